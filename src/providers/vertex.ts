import { gemini } from './gemini.ts';
import { CLOUD_PRICES } from './prices/lists/clouds.ts';
import type { Provider } from './provider.ts';

export const vertex = {
  id: 'vertex',
  baseUrl: 'https://aiplatform.googleapis.com',
  hosts: /(?:^|[.-])aiplatform\.(?:[a-z0-9-]+\.rep\.)?googleapis\.com$/,
  dialect: 'gemini',
  openaiAt: null, // Project and location stand in the path.
  keyNamesAccount: false,
  accountSelectors: gemini.accountSelectors,
  refusals: gemini.refusals,
  prices: CLOUD_PRICES.vertex,
} satisfies Provider;
