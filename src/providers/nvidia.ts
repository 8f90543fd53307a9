import type { Provider } from './provider.ts';

export const nvidia = {
  id: 'nvidia',
  keyPrefixes: ['nvapi-'],
  baseUrl: 'https://integrate.api.nvidia.com',
} satisfies Provider;
