import type { Provider } from './provider.ts';

export const huggingface = {
  id: 'huggingface',
  namedBy: { hermes: ['hf', 'hugging-face'] },
  baseUrl: 'https://router.huggingface.co',
  accountSelectors: {
    headers: ['x-hf-bill-to'],
    source: 'https://huggingface.co/docs/inference-providers/pricing',
    date: '2026-11-20',
  },
} satisfies Provider;
