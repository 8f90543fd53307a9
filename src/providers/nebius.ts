import { COMMON_HEADERS } from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const nebius = {
  id: 'nebius',
  namedBy: { hermes: ['nebius-token-factory'] },
  baseUrl: 'https://api.tokenfactory.nebius.com',
  limitHeaders: {
    ...COMMON_HEADERS,
    isReliable: false,
    source: 'Public clients that read them',
    date: '2026-11-20',
    note: 'Its limits are dynamic.',
  },
} satisfies Provider;
