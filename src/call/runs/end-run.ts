import type { RoutingTable } from '../../config/snapshots.ts';
import type { Outcome } from '../../core/words/outcome.ts';
import { runsOf, type Env } from '../../env.ts';
import { pause } from '../../runtime/background.ts';
import { asksForRun, runSaid } from '../../upstream/operation/runs.ts';
import { peekAnswer } from '../../upstream/refusal/refused-answer.ts';
import type { KnownCall } from '../call.ts';
import type { Located } from '../locate.ts';
import { isJson, RUN_BYTES_MAX } from './hold-run.ts';

/** Tells whether the answer to a call may say that a run has ended. */
export function mayEndRun({ request, env }: KnownCall, { path }: Located): boolean {
  return env.RUNS !== undefined && request.method !== 'HEAD' && asksForRun(path);
}

/** Looks whether an answer says that a run has ended, and frees its slots then. Returns the same answer, unread. */
export async function endRun(
  { env, ctx, table }: KnownCall,
  { upstream }: Located,
  answer: Response,
): Promise<Response> {
  if (!answer.ok || !isJson(answer)) return answer;
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX);
  const run = runSaid(peeked.text);
  if (run !== null && run.state !== 'goes on') {
    const outcome = run.state === 'cancelled' ? 'cancelled' : 'success';
    ctx.waitUntil(tellEnd(env, table, upstream.id, { id: run.id, outcome }));
  }
  return peeked.answer;
}

/** Pauses before each try to tell: most who ask for a run do so no more once it has ended. */
const PAUSES_MS = [0, 500, 2_000, 5_000];

interface End {
  readonly id: string;
  readonly outcome: Outcome;
}

/** Tells that a run has ended to whoever may hold its leases. False: somebody could not be told. */
export async function tellEnd(
  env: Env,
  { snapshot }: RoutingTable,
  upstream: string,
  end: End,
): Promise<boolean> {
  const places = new Set([null, ...snapshot.config.groups.map((group) => group.jurisdiction)]);
  const told = await Promise.all([...places].map((place) => tellAt(env, upstream, place, end)));
  return !told.includes(false);
}

async function tellAt(
  env: Env,
  upstream: string,
  place: string | null,
  { id, outcome }: End,
): Promise<boolean> {
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await pause(pauseMs);
    try {
      // A new stub: after a reset an old one is of no use.
      await runsOf(env, upstream, place)?.end(id, outcome);
      return true;
    } catch {
      // The next try; after the last one its time ends it.
    }
  }
  return false;
}
