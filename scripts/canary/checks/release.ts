import { setTimeout as delay } from 'node:timers/promises';
import type { Leaving } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import { CLOSED, type CanaryGroup } from '../groups.ts';
import { openH2Call, type H2Leaving } from '../h2-call.ts';
import type { CanaryStage } from '../stage.ts';
import { until } from '../wait.ts';

/** A way in which callers leave, and how long it took until their place or slot was free. */
interface LeavingResult {
  readonly name: string;
  /** Null: it was not free in time. */
  readonly ms: number | null;
  /** Nobody promises anything of it. */
  readonly isJudged: boolean;
}

/** A call as far as leaving it goes. */
interface Leavable {
  readonly isThere: () => Promise<boolean>;
  readonly leave: () => void;
  /** Ends what leaving has left open. */
  readonly end: () => void;
}

/** How long a call may take until it waits or streams. */
const BEGINS_WITHIN_MS = 30_000;

/** How long a call waits or streams before its caller leaves. */
const LASTS_MS = 500;

const MAX_WAIT_MS = 600_000;

/** Kinds of leaving over HTTP/1.1. */
const KINDS: readonly Leaving[] = ['close', 'reset', 'half_close'];
const H2_KINDS: readonly H2Leaving[] = ['stream_reset', 'connection_close'];

async function load(stage: CanaryStage, group: CanaryGroup): Promise<number> {
  const { queued, in_use: inUse } = await stage.status(group);
  return queued + inUse;
}

async function timeOf(
  stage: CanaryStage,
  group: CanaryGroup,
  name: string,
  call: Leavable,
  isJudged: boolean,
): Promise<LeavingResult & { readonly isStuck: boolean }> {
  const { withinMs, lookEveryMs } = stage.pace.release;
  const { signal } = stage;
  stage.say(name);
  const isFree = async (): Promise<boolean> => (await load(stage, group)) === 0;
  const leave = async (): Promise<number | null> => {
    const began = await until(call.isThere, { withinMs: BEGINS_WITHIN_MS, signal });
    if (began === null) throw new Error(`${name}: the call never came to wait or stream`);
    await delay(LASTS_MS, undefined, { signal });
    if (await isFree()) throw new Error(`${name}: the call was over too soon`);
    call.leave();
    return until(isFree, { withinMs, everyMs: lookEveryMs, signal });
  };
  const ms = await leave().finally(call.end);
  // The next one begins with an empty group, or is not to be told from this one.
  const patience = { withinMs: withinMs * 6, everyMs: lookEveryMs, signal };
  const isStuck = ms === null && (await until(isFree, patience)) === null;
  return { name, ms, isJudged, isStuck };
}

/** Leaves in one way after the other, up to one that leaves something behind for good. */
async function inTurn(
  stage: CanaryStage,
  group: CanaryGroup,
  ways: readonly { readonly name: string; readonly send: () => Leavable }[],
): Promise<LeavingResult[]> {
  const left: LeavingResult[] = [];
  for (const { name, send } of ways) {
    const isJudged = !name.endsWith('half_close');
    const { isStuck, ...one } = await timeOf(stage, group, name, send(), isJudged);
    left.push(one);
    if (isStuck) break;
  }
  return left;
}

function whileWaiting(stage: CanaryStage): Promise<LeavingResult[]> {
  const group = stage.group('release');
  const extra = { maxWaitMs: MAX_WAIT_MS };
  const isThere = async (): Promise<boolean> => (await load(stage, group)) === 1;
  const sent = (how: Leaving): Leavable => {
    const call = stage.send(group, extra);
    return { isThere, leave: () => call.leave(how), end: () => call.leave('close') };
  };
  const sentH2 = (how: H2Leaving): Leavable => {
    stage.sent.calls += 1;
    const call = openH2Call(stage.closedCall(group, extra));
    return { isThere, leave: () => call.leave(how), end: () => call.leave('connection_close') };
  };
  return inTurn(stage, group, waysOf(stage, 'waiting', sent, sentH2));
}

/** Lists the ways of leaving that there are: HTTP/2 wants TLS. */
function waysOf(
  stage: CanaryStage,
  state: string,
  sent: (how: Leaving) => Leavable,
  sentH2: (how: H2Leaving) => Leavable,
) {
  const isSecure = stage.target.url.startsWith('https:');
  return [
    ...KINDS.map((how) => ({ name: `${state}, HTTP/1.1 ${how}`, send: () => sent(how) })),
    ...H2_KINDS.filter(() => isSecure).map((how) => ({
      name: `${state}, HTTP/2 ${how}`,
      send: () => sentH2(how),
    })),
  ];
}

async function isServed(answered: Promise<number | null>): Promise<boolean> {
  const status = await answered;
  if (status !== 200) throw new Error(`the upstream answered ${status ?? 'nothing'}`);
  return true;
}

function whileStreaming(stage: CanaryStage): Promise<LeavingResult[]> {
  const { upstream, upstreamGroup: group } = stage;
  if (upstream === null) return Promise.resolve([]);
  const sent = (how: Leaving): Leavable => {
    const call = stage.sendUpstream(upstream.stream());
    const isThere = () => isServed(call.answered);
    return { isThere, leave: () => call.leave(how), end: () => call.leave('close') };
  };
  const sentH2 = (how: H2Leaving): Leavable => {
    stage.sent.calls += 1;
    stage.sent.calls_to_upstream += 1;
    const call = openH2Call(stage.upstreamCall(upstream.stream()));
    const isThere = () => isServed(call.answered);
    return { isThere, leave: () => call.leave(how), end: () => call.leave('connection_close') };
  };
  return inTurn(stage, group, waysOf(stage, 'streaming', sent, sentH2));
}

const reported = ({ name, ms }: LeavingResult, withinMs: number): string =>
  `${name}: ${ms === null ? `not within ${duration(withinMs)}` : duration(ms)}`;

/** Measures how long the place or slot of a caller is taken after it has left. */
export const release: Check = {
  id: 'release',
  title: 'Time until who has left is gone',
  needs: [],
  plan: (_pace, hasUpstream) => ({
    calls: KINDS.length + H2_KINDS.length,
    ms: 20_000,
    ...(hasUpstream && { paidCalls: KINDS.length + H2_KINDS.length }),
  }),
  groups: () => ({ release: CLOSED }),
  async run(stage) {
    const left = [...(await whileWaiting(stage)), ...(await whileStreaming(stage))];
    const { withinMs } = stage.pace.release;
    const isWell = left.every(({ ms, isJudged }) => ms !== null || !isJudged);
    const figures = { free_after_ms: Object.fromEntries(left.map(({ name, ms }) => [name, ms])) };
    const meaning = isWell
      ? 'The platform tells of callers that leave; a half-closed connection may also count as one that waits.'
      : 'The platform does not tell of such callers: their slots return when their leases lapse, 45 s later.';
    return outcome(
      isWell,
      left.map((each) => reported(each, withinMs)).join('; '),
      meaning,
      figures,
    );
  },
};
