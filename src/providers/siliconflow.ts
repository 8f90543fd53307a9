import type { Provider } from './provider.ts';

export const siliconflow = {
  id: 'siliconflow',
  baseUrl: 'https://api.siliconflow.com',
  // With 403: the balance is exhausted. https://docs.siliconflow.com, 2026-11-27.
  refusals: [{ kind: 'quota', scope: 'upstream', codes: ['30001'], onClientError: true }],
} satisfies Provider;
