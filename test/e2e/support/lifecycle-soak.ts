import { setTimeout as delay } from 'node:timers/promises';
import type { LifecycleCallLeaving, LifecycleOpenCall } from './lifecycle-call.ts';
import { openChat } from './lifecycle-call.ts';
import type { LifecycleRandom } from './lifecycle-random.ts';
import { clock } from './lifecycle-wait.ts';

/** A call that does not end within this time hangs. */
const HANGS_AFTER_MS = 100_000;

/** Habit of a client of the soak, and how that may end. */
interface Habit {
  readonly name: string;
  readonly headers: (random: LifecycleRandom) => Record<string, string>;
  /** Leaves so many milliseconds after it sent its call, or after its first chunk. */
  readonly leaves?: { readonly from: 'sent' | 'answered'; readonly afterMsMax: number };
  readonly expected: readonly string[];
}

const pace = (random: LifecycleRandom): Record<string, string> => ({
  'x-strict-chunks': String(random.between(1, 20)),
  'x-strict-chunk-delay-ms': String(random.between(0, 15)),
});

const endless = (random: LifecycleRandom): Record<string, string> => ({
  ...pace(random),
  'x-strict-chunks': '100000',
  'x-strict-chunk-delay-ms': '5',
});

const HABITS: readonly (readonly [weight: number, habit: Habit])[] = [
  [50, { name: 'reads to the end', headers: pace, expected: ['200 complete'] }],
  [
    12,
    {
      name: 'leaves in mid-stream',
      headers: endless,
      leaves: { from: 'answered', afterMsMax: 60 },
      expected: ['200 cut'],
    },
  ],
  [
    6,
    {
      name: 'leaves a silent stream',
      headers: () => ({ 'x-strict-silent-after-chunks': '1' }),
      leaves: { from: 'answered', afterMsMax: 200 },
      expected: ['200 cut'],
    },
  ],
  [
    10,
    {
      name: 'leaves soon, in the queue or not',
      headers: endless,
      leaves: { from: 'sent', afterMsMax: 300 },
      expected: ['200 cut', 'cut before the headers'],
    },
  ],
  [
    6,
    {
      name: 'has its stream broken',
      headers: (random) => ({
        ...pace(random),
        'x-strict-chunks': '30',
        'x-strict-break-after-chunks': String(random.between(0, 10)),
      }),
      // Plain workerd writes the last chunk even of a chunked body that broke off.
      expected: ['200 cut', '200 that ends too soon'],
    },
  ],
  [
    6,
    {
      name: 'has its connection reset',
      headers: () => ({ 'x-strict-reset-before-headers': '1' }),
      expected: ['502 complete'],
    },
  ],
  [
    6,
    {
      name: 'gets an error of the upstream',
      headers: (random) => ({
        'x-strict-status': String(
          random.pick([
            [1, 429],
            [1, 500],
            [1, 529],
          ]),
        ),
      }),
      expected: ['429 complete', '500 complete', '529 complete'],
    },
  ],
  [
    4,
    {
      name: 'does not want to wait',
      headers: (random) => ({ ...pace(random), 'headgate-max-wait': '0' }),
      // 503: the upstream's 429 to somebody else has paused the group.
      expected: ['200 complete', '429 complete', '503 complete'],
    },
  ],
];

/** One call of the soak, from its sending to its end. */
export interface SoakCall {
  readonly habit: string;
  readonly label: string;
  readonly outcome: string;
  readonly asExpected: boolean;
  readonly sentAt: number;
  readonly endedAt: number;
}

async function leaveIfSo(
  habit: Habit,
  call: LifecycleOpenCall,
  random: LifecycleRandom,
): Promise<void> {
  if (habit.leaves === undefined) return;
  const { from, afterMsMax } = habit.leaves;
  const how = random.pick<LifecycleCallLeaving>([
    [1, 'FIN'],
    [1, 'RST'],
  ]);
  const afterMs = random.between(0, afterMsMax);
  if (from === 'answered') await Promise.race([call.answered, call.ended]);
  await delay(afterMs);
  call.leave(how);
}

async function outcomeOf(call: LifecycleOpenCall): Promise<string> {
  const hangs = delay(HANGS_AFTER_MS, 'hangs' as const, { ref: false });
  const end = await Promise.race([call.ended, hangs]);
  if (end === 'hangs') {
    call.leave('RST');
    return 'hangs';
  }
  const status = await call.answered.catch(() => null);
  if (status === null) return 'cut before the headers';
  const isStream = status === 200 && end === 'complete';
  return isStream && !call.text().endsWith('data: [DONE]\n\n')
    ? '200 that ends too soon'
    : `${status} ${end}`;
}

/** Sends one call as some client would. */
export async function soakCall(
  url: string,
  label: string,
  random: LifecycleRandom,
): Promise<SoakCall> {
  const habit = random.pick(HABITS);
  const sentAt = clock();
  const call = openChat(url, { label, headers: habit.headers(random) });
  const leaving = leaveIfSo(habit, call, random).catch(() => undefined);
  const outcome = await outcomeOf(call);
  await leaving;
  const asExpected = habit.expected.includes(outcome);
  return { habit: habit.name, label, outcome, asExpected, sentAt, endedAt: clock() };
}
