import { setTimeout as delay } from 'node:timers/promises';
import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check, type CheckOutcome } from '../check.ts';
import { countsOf, listed, quantile } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';

const TICK_MS = 10;

const PATIENCE_MS = 30_000;

/** Share of rejected calls above which the object counts as overloaded. */
const OVERLOADED_FROM = 0.01;

/** Minimum shares of a step's rate that must be sent and answered. Below them, a higher rate measures this machine. */
const LEAST = { sent: 0.8, answered: 0.5 };

const OVERLOADED = ['limiter_overloaded', 'limiter_unavailable'];

interface OverloadStep {
  readonly rate: number;
  readonly ends: readonly CanaryCallEnd[];
  /** Calls per second, measured until the last one was sent. */
  readonly sent: number;
  /** Calls per second, measured until the last response arrived. */
  readonly answered: number;
}

const isOverload = ({ reason }: CanaryCallEnd): boolean => OVERLOADED.includes(reason ?? '');
const isExpected = (end: CanaryCallEnd): boolean => end.reason === 'busy' || isOverload(end);

async function runStep(stage: CanaryStage, rate: number): Promise<OverloadStep> {
  const { stepMs } = stage.pace.overload;
  const total = Math.max(1, Math.round((rate * stepMs) / 1_000));
  const startedAt = performance.now();
  const ends: Promise<CanaryCallEnd>[] = [];
  const group = stage.group('overload');
  while (ends.length < total) {
    const due = Math.ceil(((performance.now() - startedAt) / 1_000) * rate);
    while (ends.length < Math.min(total, due)) {
      ends.push(stage.send(group, { isKeptOpen: true, patienceMs: PATIENCE_MS }).ended);
    }
    await delay(TICK_MS, undefined, { signal: stage.signal });
  }
  const perS = (): number => (total / (performance.now() - startedAt)) * 1_000;
  const sent = perS();
  return { rate, sent, ends: await Promise.all(ends), answered: perS() };
}

/** Whether this machine cannot send a higher rate. */
const isSlow = ({ rate, sent, answered }: OverloadStep): boolean =>
  sent < rate * LEAST.sent || answered < rate * LEAST.answered;

function judge(
  steps: readonly OverloadStep[],
  overloadedAt: OverloadStep | undefined,
): CheckOutcome {
  const ends = steps.flatMap((step) => step.ends);
  const unexpected = ends.filter((end) => !isExpected(end));
  const last = steps.at(-1);
  const isShort = last !== undefined && isSlow(last);
  const times = (step: OverloadStep | undefined, part: number): number =>
    Math.round(
      quantile(
        (step?.ends ?? []).map(({ ms }) => ms),
        part,
      ),
    );
  const most = Math.round(Math.max(...steps.map(({ answered }) => answered)));
  const tail = `p50 ${times(last, 0.5)} ms, p99 ${times(last, 0.99)} ms in the last step`;
  const figures = {
    overloaded_at_per_s: overloadedAt?.rate ?? null,
    most_answered_per_s: most,
    unexpected: countsOf(unexpected.map(nameOf)),
    steps: steps.map((step) => ({
      rate: step.rate,
      sent: Math.round(step.sent),
      answered: Math.round(step.answered),
      overloaded: step.ends.filter(isOverload).length,
      p50_ms: times(step, 0.5),
      p99_ms: times(step, 0.99),
    })),
  };
  if (unexpected.length > 0) {
    const found = `unexpected responses: ${listed(figures.unexpected)}`;
    return outcome(
      false,
      found,
      'Under load, calls get responses that they do not get otherwise.',
      figures,
    );
  }
  if (overloadedAt === undefined) {
    const found = `not overloaded up to ${most} acquire requests per second; ${tail}`;
    const meaning = isShort
      ? 'This machine cannot send more. The pool may accept a higher rate.'
      : 'One pool accepts this rate.';
    return outcome(true, found, meaning, figures);
  }
  const found = `overloaded at ${overloadedAt.rate} acquire requests per second; ${tail}`;
  const meaning =
    'A call takes one acquire request. Split a group (partition_by) that comes near this rate.';
  return outcome(overloadedAt !== steps[0], found, meaning, figures);
}

/** Finds the rate at which one object rejects calls as overloaded. */
export const overload: Check = {
  id: 'overload',
  title: 'Maximum acquire requests per second of one pool',
  needs: ['load'],
  plan: ({ overload: { ratesPerS, stepMs } }) => ({
    calls: Math.round(ratesPerS.reduce((sum, rate) => sum + (rate * stepMs) / 1_000, 0)),
    ms: ratesPerS.length * stepMs,
  }),
  groups: () => ({ overload: CLOSED }),
  async run(stage) {
    const steps: OverloadStep[] = [];
    for (const rate of stage.pace.overload.ratesPerS) {
      stage.say(`${rate} calls per second`);
      const step = await runStep(stage, rate);
      const overloaded = step.ends.filter(isOverload).length;
      steps.push(step);
      if (overloaded > step.ends.length * OVERLOADED_FROM) return judge(steps, step);
      if ((steps.length > 1 && isSlow(step)) || step.ends.some((end) => !isExpected(end))) break;
    }
    return judge(steps, undefined);
  },
};
