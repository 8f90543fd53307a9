import type { AccountSigns, Provider } from './provider.ts';

/** Names the account of a token that ChatGPT has given out: the workspace, and whose seat in it. */
export const CHATGPT_ACCOUNT = {
  claims: [
    ['https://api.openai.com/auth', 'chatgpt_account_id'],
    ['https://api.openai.com/auth', 'chatgpt_user_id'],
  ],
  source: 'https://github.com/openai/codex',
  date: '2026-11-20',
  note: 'Codex refreshes its token by itself. In a workspace of many users each has limits of their own.',
} satisfies AccountSigns;

export const chatgpt = {
  id: 'chatgpt',
  baseUrl: null,
  hosts: /^chatgpt\.com$/,
  // Codex asks it over WebSocket first.
  speaksTurns: true,
  account: CHATGPT_ACCOUNT,
  accountSelectors: {
    headers: ['chatgpt-account-id'],
    source: 'https://github.com/openai/codex',
    date: '2026-11-20',
  },
} satisfies Provider;
