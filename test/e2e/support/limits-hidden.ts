import { openChat } from './lifecycle-call.ts';
import type { LifecycleStage } from './lifecycle-stage.ts';
import { FullQueue } from './limits-load.ts';

/** More than the 64 that are let through at first, so that all of these are refused together. */
const CLIENTS = 72;

/** The two ways not to know what an upstream takes at once. */
export const HIDDEN = [
  { id: 'configured', name: 'configured as 64', group: { limits: { max_concurrency: 64 } } },
  { id: 'automatic', name: 'not configured at all', group: null },
];

/** Keeps more calls waiting for an upstream than it is thought to take. */
export function fillQueue(stage: LifecycleStage, id: string): FullQueue {
  const path = `/${id}/v1/chat/completions`;
  return new FullQueue(CLIENTS, (index) => openChat(stage.url(), { path, label: `call-${index}` }));
}
