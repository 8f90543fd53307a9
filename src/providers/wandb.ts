import type { Provider } from './provider.ts';

export const wandb = {
  id: 'wandb',
  baseUrl: 'https://api.inference.wandb.ai',
} satisfies Provider;
