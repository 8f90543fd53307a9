import { siliconflow } from './siliconflow.ts';
import type { Provider } from './provider.ts';

export const siliconflowCn = {
  id: 'siliconflow-cn',
  namedBy: { picoclaw: ['siliconflow'], portkey: ['siliconflow'] },
  baseUrl: 'https://api.siliconflow.cn',
  refusals: siliconflow.refusals,
} satisfies Provider;
