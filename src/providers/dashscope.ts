import type { Provider } from './provider.ts';

export const dashscope = {
  id: 'dashscope',
  namedBy: { clawith: ['qwen'], picoclaw: ['qwen-portal', 'qwen'] },
  baseUrl: 'https://dashscope.aliyuncs.com',
  openaiAt: '/compatible-mode/v1',
  anthropicAt: '/apps/anthropic/v1',
  accountSelectors: {
    headers: ['x-dashscope-workspace'],
    source: 'https://help.aliyun.com/zh/model-studio/use-workspace',
    date: '2026-11-20',
  },
  refusals: [
    { kind: 'quota', scope: 'model', stage: 'plan', text: /free allocated quota exceeded/ },
    // The windows of a coding plan, which count all models.
    {
      kind: 'long_window',
      scope: 'credential',
      text: /\b(?:hour|day|week|month) allocated quota exceeded/,
    },
    {
      kind: 'tokens',
      scope: 'model',
      codes: ['throttling.allocationquota', 'insufficient_quota'],
      text: /allocated quota exceeded|exceeded your current quota/,
    },
  ],
  quirks: { quotaMeansTokens: true },
} satisfies Provider;
