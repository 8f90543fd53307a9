import { Crowd, SHAPES } from './queue-load.ts';

/**
 * Prints how many bytes of heap a waiter takes: run by `bench/queue.ts` in a process of its own, with the
 * shape's index and the number of waiters. The ticket and its strings are part of it.
 */
const [index = '0', waiters = '5000'] = process.argv.slice(2);
const shape = SHAPES[Number(index)];
const { gc } = globalThis;
if (shape === undefined || gc === undefined) throw new Error('run by bench/queue.ts');

const collect = gc;

function heapUsed(): number {
  for (let round = 0; round < 4; round += 1) collect();
  return process.memoryUsage().heapUsed;
}

// Once for nothing, so that what the code itself takes is there before.
new Crowd(shape).fill(1_000);
const callersAtOnce = new Crowd(shape);
const before = heapUsed();
callersAtOnce.fill(Number(waiters));
console.log(Math.round((heapUsed() - before) / callersAtOnce.state.queue.byTicket.size));
