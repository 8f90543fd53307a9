/**
 * Measures what a decision of the queue costs. Times the pure core at growing numbers of waiters, says how much
 * memory one takes, and whether the aims are met at as many as a real group may hold. `--quick`: a short
 * run that judges nothing.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WAITERS_MAX } from '../src/group/parked.ts';
import { Crowd, SHAPES, type Shape } from './support/queue-load.ts';

const SIZES = [100, 1_000, WAITERS_MAX, 10_000, 100_000];

/** Aim with `WAITERS_MAX` waiters. */
const AIMS = { decisionUs: 20, bytesPerWaiter: 1_536 };

const MEMORY = fileURLToPath(new URL('support/queue-memory.ts', import.meta.url));

/** Microseconds of each decision. */
interface QueueCosts {
  readonly enqueue: number;
  readonly grant: number;
  readonly cancel: number;
  /** A slice ends, and its caller asks again. */
  readonly again: number;
}

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const ROUNDS = values.quick ? 3 : 15;

/** Times a decision in microseconds: the median of some rounds. */
function timed(prepare: () => readonly (() => void)[]): number {
  const took = Array.from({ length: ROUNDS }, () => {
    const decisions = prepare();
    const began = process.hrtime.bigint();
    for (const decide of decisions) decide();
    return Number(process.hrtime.bigint() - began) / 1_000 / decisions.length;
  });
  return took.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? NaN;
}

function measure(shape: Shape, waiters: number): QueueCosts {
  const callersAtOnce = new Crowd(shape);
  callersAtOnce.fill(waiters);
  const count = Math.min(100, Math.max(20, waiters / 20));
  const batch = <Item>(make: () => Item): Item[] => Array.from({ length: count }, make);
  const { queue } = callersAtOnce.state;
  const tickets = () => [...queue.byTicket.keys()];
  const leave = (ids: ReturnType<typeof tickets>) => {
    return ids.map((id) => () => callersAtOnce.send({ kind: 'cancel', ticketId: id }));
  };
  const enqueue = timed(() => {
    for (const cancel of leave(tickets().slice(-count))) cancel();
    return batch(() => callersAtOnce.ticket()).map((ticket) => () => callersAtOnce.ask(ticket));
  });
  const grant = timed(() => {
    callersAtOnce.fill(waiters);
    return batch(() => () => callersAtOnce.grant());
  });
  const cancel = timed(() => {
    callersAtOnce.fill(waiters);
    const ids = tickets();
    const stride = Math.floor(ids.length / count);
    return leave(ids.filter((_, index) => index % stride === 0).slice(0, count));
  });
  callersAtOnce.fill(waiters);
  const again = timed(() => {
    // Slices end one by one in a group where callers come one by one.
    const some = [...queue.byTicket.values()].slice(0, 20);
    return some.map((waiter) => () => {
      waiter.sliceEndsAt = callersAtOnce.now;
      callersAtOnce.state.waitersDueAt = callersAtOnce.now;
      callersAtOnce.send({ kind: 'tick' });
      callersAtOnce.send(callersAtOnce.askOf(waiter.ticket));
    });
  });
  return { enqueue, grant, cancel, again };
}

function bytesPerWaiter(shape: Shape): number {
  const args = ['--expose-gc', MEMORY, `${SHAPES.indexOf(shape)}`, `${WAITERS_MAX}`];
  const child = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (child.status !== 0) throw new Error(child.stderr);
  return Number(child.stdout);
}

function row(cells: readonly (string | number)[]): string {
  return cells
    .map((cell, index) => {
      const text = typeof cell === 'number' ? cell.toFixed(1) : cell;
      return index === 0 ? text.padEnd(10) : text.padStart(9);
    })
    .join('');
}

const missed: string[] = [];
for (const shape of SHAPES) {
  console.log(`\n${shape.name}: microseconds of a decision`);
  console.log(row(['waiters', 'enqueue', 'grant', 'cancel', 'again']));
  measure(shape, 1_000); // so that the code is compiled
  for (const waiters of SIZES) {
    const { enqueue, grant, cancel, again } = measure(shape, waiters);
    console.log(row([waiters.toLocaleString('en'), enqueue, grant, cancel, again]));
    const worst = Math.max(enqueue, grant, cancel);
    if (waiters === WAITERS_MAX && worst > AIMS.decisionUs) {
      missed.push(`${shape.name}: ${worst.toFixed(1)} µs of ${AIMS.decisionUs}`);
    }
  }
  const bytes = bytesPerWaiter(shape);
  console.log(`${bytes} bytes a waiter, of ${WAITERS_MAX.toLocaleString('en')}`);
  if (bytes > AIMS.bytesPerWaiter) missed.push(`${shape.name}: ${bytes} bytes a waiter`);
}
console.log(missed.length === 0 ? '\nAll aims are met.' : `\nMissed: ${missed.join('; ')}.`);
if (!values.quick && missed.length > 0) process.exitCode = 1;
