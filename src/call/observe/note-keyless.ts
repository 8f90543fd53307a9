import { BoundedSet } from '../../core/parts/bounded-map.ts';
import type { KeylessCaller } from '../../contract/reasons.ts';
import { directoryOf, type Env } from '../../env.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock, within } from '../../runtime/async.ts';
import type { FoundFacts } from '../request/call.ts';
import { BehindCalls, type RefusedRequest } from './note-refusal.ts';

// Counts served calls of callers without a gateway key, so that an operator can see which callers would be locked out
// if one were required.

/** Maximum callers between two flushes. Further ones are counted together for each upstream. */
const CALLERS_MAX = 256;

const ANSWER_MS_MAX = 5_000;

interface Count {
  calls: number;
  lastAt: number;
}

let counts = new Map<string, Map<string, Count>>();
let callers = 0;

/** A caller that is new here is reported soon, and its further calls within a minute. */
const ofNew = new BehindCalls({ firstMs: 1_000, everyMs: 10_000, flush });
const ofKnown = new BehindCalls({ firstMs: 1_000, everyMs: 60_000, flush });

const KNOWN_MAX = 2_000;

const known = new BoundedSet<string>(KNOWN_MAX);

export function noteIfKeyless(
  call: Pick<RefusedRequest, 'env' | 'ctx'>,
  { caller, located }: FoundFacts,
  status: number,
): void {
  if (caller === null || caller.key !== null || located === null || status >= 400) return;
  const now = steadyClock.now();
  const { id } = located.upstream;
  const name = caller.fingerprint ?? 'anonymous';
  const isNew = count(id, name, 1, now) && !known.has(`${id} ${name}`);
  if (isNew) known.add(`${id} ${name}`);
  (isNew ? ofNew : ofKnown).soon(call, now);
}

/** Adds calls. Returns whether they are the first ones of the caller since the last flush. */
function count(upstream: string, caller: string, calls: number, at: number): boolean {
  const ofUpstream = counts.get(upstream) ?? new Map<string, Count>();
  counts.set(upstream, ofUpstream);
  let name = caller;
  let sum = ofUpstream.get(name);
  if (sum === undefined && callers >= CALLERS_MAX) {
    name = '';
    sum = ofUpstream.get(name);
  }
  if (sum === undefined) {
    callers += 1;
    ofUpstream.set(name, { calls, lastAt: at });
    return true;
  }
  sum.calls += calls;
  sum.lastAt = Math.max(sum.lastAt, at);
  return false;
}

async function flush(env: Env): Promise<void> {
  const taken = counts;
  counts = new Map();
  callers = 0;
  if (taken.size === 0) return;
  const rows: KeylessCaller[] = [...taken].flatMap(([upstream, ofUpstream]) =>
    [...ofUpstream].map(([caller, { calls, lastAt }]) => ({
      upstream,
      caller: caller === '' ? null : caller,
      calls,
      last_at: new Date(lastAt).toISOString(),
    })),
  );
  try {
    await within(ANSWER_MS_MAX, directoryOf(env).noteKeyless(rows));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // They are sent with the next ones.
    for (const { upstream, caller, calls, last_at: at } of rows) {
      count(upstream, caller ?? '', calls, Date.parse(at));
    }
  }
}
