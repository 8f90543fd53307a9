import { bounded } from '../attention/attention.ts';
import { readAttention } from '../overview/attention.ts';
import { steadyClock } from '../runtime/clock.ts';
import type { AdminApp } from './context.ts';
import { serve } from './serve.ts';

export function addAttentionRoutes(app: AdminApp): void {
  serve(app, 'getAttention', async ({ context, query: { rule } }) => {
    const { version, all } = await readAttention(context.env);
    const listed = bounded(rule === undefined ? all : all.filter((one) => one.rule === rule));
    const at = new Date(steadyClock.now()).toISOString();
    return { status: 200, body: { at, version, ...listed } };
  });
}
