import type { Provider } from './provider.ts';

export const hyperbolic = {
  id: 'hyperbolic',
  baseUrl: 'https://api.hyperbolic.xyz',
} satisfies Provider;
