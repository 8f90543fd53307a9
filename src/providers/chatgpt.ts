import type { AccountSigns, Provider } from './provider.ts';

/** The account of a ChatGPT token: the workspace, and the user of the seat. */
export const CHATGPT_ACCOUNT = {
  claims: [
    ['https://api.openai.com/auth', 'chatgpt_account_id'],
    ['https://api.openai.com/auth', 'chatgpt_user_id'],
  ],
  source: 'https://github.com/openai/codex',
  date: '2026-11-20',
  note: 'Codex refreshes its token automatically. Each user of a workspace has separate limits.',
} satisfies AccountSigns;

export const chatgpt = {
  id: 'chatgpt',
  baseUrl: null,
  hosts: /^chatgpt\.com$/,
  // Codex connects to it over WebSocket first.
  speaksTurns: true,
  account: CHATGPT_ACCOUNT,
  accountSelectors: {
    headers: ['chatgpt-account-id'],
    source: 'https://github.com/openai/codex',
    date: '2026-11-20',
  },
} satisfies Provider;
