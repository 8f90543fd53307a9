/**
 * Counts the messages that a pool's object gets after it was reset, from the calls that wait for it and hold its slots:
 * the Worker's side as it is, and a pool that does nothing but count. `--tree <folder>`, once or more: other checkouts
 * than this one. `--waiters <n>`, `--holders <n>`.
 */
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { AcquireAnswer } from '../src/contract/rpc/group-rpc.ts';
import { printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    tree: { type: 'string', multiple: true, default: [resolve(import.meta.dirname, '..')] },
    waiters: { type: 'string', default: '2000' },
    holders: { type: 'string', default: '200' },
  },
});

const WAITERS = Number(values.waiters);
const HOLDERS = Number(values.holders);

/** Holders renew for the first time after a second. */
const BEFORE_MS = 2_000;
const AFTER_MS = 5_000;

/** A pool that parks whoever asks, tells each its place once, and breaks all connections at a reset. */
class CountingPool {
  readonly #parked: ((error: Error) => void)[] = [];
  readonly #asked = new Set<string>();
  /** When each message came, since the reset. */
  readonly times: number[] = [];
  #resetAt = Infinity;

  acquire({
    ticket: { id: ticketId },
  }: {
    readonly ticket: { readonly id: string };
  }): Promise<AcquireAnswer> {
    this.#note();
    if (this.#asked.has(ticketId)) return this.#park();
    this.#asked.add(ticketId);
    const position = Number(ticketId);
    return Promise.resolve({ kind: 'pending', position, estimateMs: 1_000, configVersion: 1 });
  }

  resume(): Promise<never> {
    this.#note();
    return this.#park();
  }

  renew(): Promise<never> {
    return this.#park();
  }

  reset(): void {
    this.#resetAt = performance.now();
    for (const fail of this.#parked.splice(0)) fail(new Error('the object was reset'));
  }

  #park(): Promise<never> {
    return new Promise((_, reject) => this.#parked.push(reject));
  }

  #note(): void {
    const since = performance.now() - this.#resetAt;
    if (since >= 0) this.times.push(since);
  }
}

/** Finds the most messages within so many milliseconds. */
function peak(times: readonly number[], withinMs: number): number {
  let most = 0;
  let first = 0;
  for (const [last, at] of times.entries()) {
    while ((times[first] ?? at) < at - withinMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Parts of the Worker's side. */
interface Side {
  readonly acquireSlot: (...args: unknown[]) => Promise<unknown>;
  readonly LeaseHolder: new (...args: unknown[]) => { keep(onRevoked: () => void): void };
  readonly onTimer: unknown;
}

async function sideOf(tree: string): Promise<Side> {
  const load = (path: string): Promise<unknown> => import(resolve(tree, 'src', path));
  const [slot, holder, clock] = await Promise.all([
    load('call/acquire/acquire-slot.ts'),
    load('call/acquire/lease-holder.ts'),
    load('runtime/async.ts'),
  ]);
  return Object.assign({}, slot, holder, clock) as Side;
}

async function measure(tree: string): Promise<number[]> {
  const { acquireSlot, LeaseHolder, onTimer } = await sideOf(tree);
  const pool = new CountingPool();
  const { signal } = new AbortController();
  const how = { signal, after: onTimer, listener: null, until: Infinity, bypass: () => null };
  for (let at = 0; at < WAITERS; at += 1) {
    const request = { attempt: 1, ticket: { id: `${at}`, wait: true, deadlineAt: null } };
    acquireSlot(() => pool, request, how).catch(() => undefined);
  }
  const granted = { lease: { renew: () => pool.renew() }, attachment: 1 };
  const ctx = { waitUntil: (work: Promise<unknown>) => void work.catch(() => undefined) };
  for (let at = 0; at < HOLDERS; at += 1) {
    const holder = new LeaseHolder(
      () => pool,
      { ticket: {} },
      { ...granted, leaseId: `held-${at}.1` },
      ctx,
      onTimer,
    );
    holder.keep(() => undefined);
  }
  await delay(BEFORE_MS);
  pool.reset();
  await delay(AFTER_MS);
  return pool.times;
}

const rows: string[][] = [];
for (const tree of values.tree) {
  const times = await measure(tree);
  const shown = [peak(times, 1_000), peak(times, 100), times.length, Math.round(times.at(-1) ?? 0)];
  rows.push([tree, ...shown.map((figure) => figure.toLocaleString('en'))]);
}
console.log(`\n${WAITERS} who wait and ${HOLDERS} who hold, after a reset of their object\n`);
printTable([
  [
    '',
    'most messages in a second',
    'in 100 ms',
    `in ${AFTER_MS / 1_000} s`,
    'the last one after, ms',
  ],
  ...rows,
]);
process.exit();
