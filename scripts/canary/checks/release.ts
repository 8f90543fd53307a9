import { setTimeout as delay } from 'node:timers/promises';
import type { Leaving } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { duration } from '../figures.ts';
import { CLOSED, type CanaryGroup } from '../groups.ts';
import { openH2Call, type H2Leaving } from '../h2-call.ts';
import type { CanaryStage } from '../stage.ts';
import { until } from '../wait.ts';

/** A way in which clients disconnect, and how long it took until the place or slot was free. */
interface LeavingResult {
  readonly name: string;
  /** null if it was not free in time. */
  readonly ms: number | null;
  /** Whether the result counts. A half-closed connection may be a client that still waits. */
  readonly isJudged: boolean;
}

interface Leavable {
  readonly isThere: () => Promise<boolean>;
  readonly leave: () => void;
  /** Closes what the disconnection left open. */
  readonly end: () => void;
}

/** Maximum time until a call waits or streams. */
const BEGINS_WITHIN_MS = 30_000;

/** How long a call waits or streams before its client disconnects. */
const LASTS_MS = 500;

const MAX_WAIT_MS = 600_000;

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
    if (began === null) {
      throw new Error(`${name}: the call did not start to wait or stream in time`);
    }
    await delay(LASTS_MS, undefined, { signal });
    if (await isFree()) throw new Error(`${name}: the call ended too early`);
    call.leave();
    return until(isFree, { withinMs, everyMs: lookEveryMs, signal });
  };
  const ms = await leave().finally(call.end);
  // The next call must begin with an empty group, so that it can be distinguished from this one.
  const patience = { withinMs: withinMs * 6, everyMs: lookEveryMs, signal };
  const isStuck = ms === null && (await until(isFree, patience)) === null;
  return { name, ms, isJudged, isStuck };
}

/** Tries the ways one after the other, and stops at one that permanently holds its place or slot. */
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

/** Lists the available ways to disconnect. HTTP/2 requires TLS. */
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
  if (status !== 200) {
    throw new Error(
      status === null ? 'the upstream did not respond' : `the upstream returned ${status}`,
    );
  }
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

/** Measures how long the place or slot of a client stays occupied after it disconnects. */
export const release: Check = {
  id: 'release',
  title: 'Time until the slot of a disconnected client is free',
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
      ? 'The platform reports disconnected clients. A half-closed connection may still count as a waiting client.'
      : 'The platform does not report these clients. Their slots are free when the leases expire, 45 s later.';
    return outcome(
      isWell,
      left.map((each) => reported(each, withinMs)).join('; '),
      meaning,
      figures,
    );
  },
};
