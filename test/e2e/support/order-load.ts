import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { StrictArrival } from '../../strict-upstream/counts.ts';
import type { LifecycleOpenCall } from './lifecycle-call.ts';
import { openChat } from './lifecycle-call.ts';
import { clock } from './lifecycle-wait.ts';

/** Somebody whose calls are told apart: a gateway key, or an agent run under one. */
export interface Party {
  readonly name: string;
  readonly key: string;
  readonly agent?: string;
}

interface SentCall {
  readonly label: string;
  readonly sentAt: number;
  readonly call: LifecycleOpenCall;
}

/** How a gateway key stands in the configuration. */
export function gatewayKey(key: string): { readonly id: string; readonly hash: string } {
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`;
  return { id: key.replace('hg_', ''), hash };
}

/** The calls of one party to one model. Their labels begin with the names of both. */
export class PartyCalls {
  readonly sent: SentCall[] = [];
  readonly prefix: string;
  readonly #url: string;
  readonly #party: Party;
  readonly #model: string;

  constructor(url: string, party: Party, model: string) {
    this.#url = url;
    this.#party = party;
    this.#model = model;
    this.prefix = `${model} ${party.name} `;
  }

  send(headers: Readonly<Record<string, string>> = {}): LifecycleOpenCall {
    const { key, agent } = this.#party;
    const label = `${this.prefix}${this.sent.length}`;
    const own = agent === undefined ? {} : { 'headgate-agent': agent };
    const sentAt = clock();
    const options = { label, key, model: this.#model, headers: { ...own, ...headers } };
    const call = openChat(this.#url, options);
    this.sent.push({ label, sentAt, call });
    return call;
  }

  /** Sends `size` calls at once, every `everyMs`, whether those before have ended or not. */
  async sendBursts(size: number, everyMs: number, durationMs: number): Promise<void> {
    const from = clock();
    const ends: Promise<unknown>[] = [];
    for (let at = 0; at < durationMs; at += everyMs) {
      await delay(Math.max(0, from + at - clock()));
      for (let i = 0; i < size; i += 1) ends.push(this.send().ended);
    }
    await Promise.all(ends);
  }

  /** Keeps so many calls open: each that ends is followed by another. */
  async sendInTurns(atOnce: number, durationMs: number): Promise<void> {
    const until = clock() + durationMs;
    const turns = Array.from({ length: atOnce }, async () => {
      while (clock() < until) await this.send().ended;
    });
    await Promise.all(turns);
  }

  /** How long each call took from its sending to the upstream, in milliseconds. */
  waits(arrivals: readonly StrictArrival[]): number[] {
    const arrivedAt = new Map(arrivals.map(({ label, at }) => [label, at]));
    return this.sent.flatMap(({ label, sentAt }) => {
      const at = arrivedAt.get(label);
      return at === undefined ? [] : [at - sentAt];
    });
  }
}

/** A stretch of time, in epoch milliseconds. */
export interface OrderLoadSpan {
  readonly from: number;
  readonly to: number;
}

/** Slot-seconds that calls whose label begins so took at the upstream within a stretch of time. */
export function slotSeconds(
  arrivals: readonly StrictArrival[],
  prefix: string,
  { from, to }: OrderLoadSpan,
): number {
  const ofParty = arrivals.filter(({ label }) => label?.startsWith(prefix) === true);
  const heldMs = ofParty.map(({ at, endedAt }) =>
    Math.max(0, Math.min(endedAt ?? to, to) - Math.max(at, from)),
  );
  return heldMs.reduce((sum, ms) => sum + ms, 0) / 1_000;
}

/** The value that 95 % of the others do not exceed. */
export function p95(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN;
}
