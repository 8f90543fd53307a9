import {
  openChat,
  type ChatOptions,
  type LifecycleOpenCall,
} from '../../e2e/support/lifecycle-call.ts';
import type { LifecycleStage } from '../../e2e/support/lifecycle-stage.ts';

/** Callers that call again and again. */
export interface SupportLoad {
  /** Starts no more calls, and waits for those in flight. */
  stop(): Promise<void>;
  /** Leaves all at once. */
  abandon(): void;
}

const LANES = ['high', 'normal', 'low'];

/** Lets so many callers call without a pause, each in a lane and for an agent of its own. */
export function startLoad(
  stage: LifecycleStage,
  callers: number,
  options: Pick<ChatOptions, 'model' | 'path'> = {},
): SupportLoad {
  let runs = true;
  const open = new Set<LifecycleOpenCall>();
  const caller = async (index: number): Promise<void> => {
    while (runs) {
      const call = openChat(stage.url(), {
        ...options,
        label: `load-${index}`,
        key: `key-${index % 4}`,
        headers: {
          'headgate-lane': LANES[index % 3] ?? 'normal',
          'headgate-agent': `agent-${index}`,
        },
      });
      open.add(call);
      await call.ended;
      open.delete(call);
    }
  };
  const all = Array.from({ length: callers }, (_, index) => caller(index));
  return {
    async stop() {
      runs = false;
      await Promise.all(all);
    },
    abandon() {
      runs = false;
      for (const call of open) call.leave('FIN');
    },
  };
}

/** A call whose stream goes silent after its first chunk, so that it keeps its slot. */
export function openSilent(stage: LifecycleStage, label: string): LifecycleOpenCall {
  return openChat(stage.url(), { label, headers: { 'x-strict-silent-after-chunks': '1' } });
}
