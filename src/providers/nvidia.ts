import type { Provider } from './provider.ts';

/** Without `pricedAs`, because the list has a price of 0 for most models. */
export const nvidia = {
  id: 'nvidia',
  keyPrefixes: ['nvapi-'],
  baseUrl: 'https://integrate.api.nvidia.com',
} satisfies Provider;
