// Ten thousand faults, from a seed: clients that die, answers that are lost, requests that come twice, or late, or at once,
// pools that are reset, limits that are changed. The clients are the judge: one counts itself as holding from its 201 until it
// releases, is told to stop, or its time has passed, also after its death; and of those there are never more than the
// limit lets be granted.
import { afterAll, expect, it } from 'vitest';
import type { LeaseAnswer, TicketAnswer } from '../../../src/contract/caller-api.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { leases as answer } from '../../../src/call/leases/lease-routes.ts';
import { crashPool, nothingLeaks, passAwake, pool, resetPool } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { env } from '../support/worker.ts';
import { group, limitTo } from './scene.ts';

afterAll(nothingLeaks);

const FAULTS = 10_000;
const CLIENTS = 10;
const GROUP = 'faults';

/** Numbers from a seed, the same each time (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface FaultsReport {
  readonly status: number;
  readonly body: Partial<LeaseAnswer & TicketAnswer>;
}

/** One client, and what it knows. */
interface FaultsClient {
  readonly name: string;
  jobs: number;
  ticket: string | null;
  /** All that it was answered for its lease, the newest last. Empty: it has none. */
  tokens: string[];
  /** The highest limit in force since it may have been granted: one that goes on is no new grant under a lower one. */
  limitMax: number;
}

/** The judge: who holds, as far as anybody may still be calling. */
class Judge {
  readonly #until = new Map<string, number>();
  peak = 0;
  granted = 0;

  get held(): number {
    const now = Date.now();
    for (const [id, until] of this.#until) if (now >= until) this.#until.delete(id);
    return this.#until.size;
  }

  hold(id: string, expiresAt: string): void {
    if (!this.#until.has(id)) this.granted += 1;
    this.#until.set(id, Date.parse(expiresAt));
  }

  stop(id: string): void {
    this.#until.delete(id);
  }

  isHeld(id: string): boolean {
    return this.#until.has(id);
  }
}

class FaultsWorld {
  readonly judge = new Judge();
  readonly #random: () => number;
  readonly #clients: FaultsClient[];
  limit = 3;
  faults = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    this.#clients = Array.from({ length: CLIENTS }, (_, index) => this.#newClient(index));
  }

  #newClient(index: number): FaultsClient {
    return { name: `client-${index}`, jobs: 0, ticket: null, tokens: [], limitMax: 0 };
  }

  pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#random() * all.length)] as T;
  }

  /** Picks a client. Some are rarely heard of, and lapse. */
  #anyClient(): FaultsClient {
    return this.#clients[Math.floor(this.#random() ** 3 * CLIENTS)] as FaultsClient;
  }

  chance(of: number): boolean {
    return this.#random() < of;
  }

  async #send(
    method: string,
    path: string,
    body: object | null,
    name?: string,
  ): Promise<FaultsReport> {
    const headers = {
      prefer: 'wait=0',
      'content-type': 'application/json',
      ...(name !== undefined && { 'idempotency-key': name }),
    };
    const init = { method, headers, ...(body !== null && { body: JSON.stringify(body) }) };
    const ctx = { waitUntil: (work: Promise<unknown>) => void work.catch(() => {}) };
    const response = await answer(new Request(`https://headgate.test${path}`, init), env, ctx);
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? {} : (JSON.parse(text) as FaultsReport['body']),
    };
  }

  #ask(client: FaultsClient): Promise<FaultsReport> {
    const { ticket, name, jobs } = client;
    client.limitMax = Math.max(client.limitMax, this.limit);
    const body = { group: GROUP, ...(ticket !== null && { ticket }) };
    return this.#send('POST', '/leases', body, ticket === null ? `${name}.${jobs}` : undefined);
  }

  /** Takes in an answer to an ask: from now on the client may call. */
  #hear(client: FaultsClient, { status, body }: FaultsReport): void {
    if (status === 202 && body.ticket !== undefined) {
      client.ticket = body.ticket;
      client.limitMax = this.limit;
    }
    if (status === 410) this.#begin(client);
    if (status !== 201 || body.lease === undefined) return;
    client.tokens.push(body.lease);
    this.#hold(client, body.lease_ids?.[0] ?? '', body.expires_at ?? '');
  }

  /** Has a client hold from now on: it must fit in beside all others, unless it has held without a break. */
  #hold({ limitMax: allowed }: FaultsClient, id: string, expiresAt: string): void {
    const before = this.judge.held;
    const isNew = !this.judge.isHeld(id);
    this.judge.hold(id, expiresAt);
    if (!isNew) return;
    this.judge.peak = Math.max(this.judge.peak, this.judge.held);
    if (before < allowed) return;
    throw new Error(`${before} held, ${allowed} allowed, after ${this.faults} faults: ${id}`);
  }

  /** Begins with another job, whatever becomes of the one before. */
  #begin(client: FaultsClient): void {
    client.jobs += 1;
    client.ticket = null;
    client.tokens = [];
    client.limitMax = 0;
  }

  async #renew(client: FaultsClient, token: string): Promise<void> {
    const { status, body } = await this.#send('PUT', `/leases/${token}`, null);
    const id = idOf(token);
    if (status === 410) this.judge.stop(id);
    // An answer that comes behind its own release is nobody's leave to call.
    const isItsOwn = client.tokens.some((one) => idOf(one) === id);
    if (status !== 200 || !isItsOwn) return;
    client.tokens.push(body.lease ?? token);
    this.#hold(client, id, body.expires_at ?? '');
  }

  async #release(client: FaultsClient): Promise<void> {
    const token = this.pick(client.tokens);
    this.judge.stop(idOf(token));
    this.#begin(client);
    await this.#send('DELETE', `/leases/${token}`, null);
  }

  /** Does what a client does where all is well. */
  async act(): Promise<void> {
    // Less than a pool with leases sleeps at a time, so that it is not taken for held up.
    passTime(this.pick([0, 200, 1_000, 2_000, 4_000]));
    const client = this.#anyClient();
    const token = client.tokens.at(-1);
    if (token === undefined) return this.#hear(client, await this.#ask(client));
    // Who has no time left does not go on, or asks whether it may.
    if (!this.judge.isHeld(idOf(token)) && this.chance(0.5)) return this.#begin(client);
    return this.chance(0.5) ? this.#renew(client, token) : this.#release(client);
  }

  /** Does what goes wrong. */
  async fault(): Promise<void> {
    this.faults += 1;
    const client = this.#anyClient();
    const token = client.tokens.at(-1);
    if (this.chance(0.005)) return this.#reset();
    if (this.chance(0.005)) return this.#relimit();
    if (this.chance(0.02)) return passTime(this.pick([6_000, 16_000]));
    if (token === undefined) return this.#faultOfAsking(client);
    return this.#faultOfHolding(client, token);
  }

  async #faultOfAsking(client: FaultsClient): Promise<void> {
    if (this.chance(0.01)) {
      const [reported] = await Promise.all([this.#ask(client), crashPool(GROUP)]);
      return this.#hear(client, reported);
    }
    switch (this.pick(['lost', 'twice', 'at once', 'anew', 'left'] as const)) {
      case 'lost':
        await this.#ask(client);
        return;
      case 'twice':
        await this.#ask(client);
        return this.#hear(client, await this.#ask(client));
      case 'at once': {
        const both = await Promise.all([this.#ask(client), this.#ask(client)]);
        for (const reported of both) if (client.tokens.length === 0) this.#hear(client, reported);
        return;
      }
      case 'anew':
        return this.#begin(client);
      case 'left':
        if (client.ticket !== null) await this.#send('DELETE', `/tickets/${client.ticket}`, null);
        return this.#begin(client);
    }
  }

  async #faultOfHolding(client: FaultsClient, token: string): Promise<void> {
    if (this.chance(0.01)) {
      await Promise.all([this.#renew(client, token), crashPool(GROUP)]);
      return;
    }
    switch (this.pick(['dies', 'late', 'old', 'twice', 'crossed', 'lost', 'asks'] as const)) {
      case 'dies':
        // Its call runs on at the provider, and nobody renews.
        return this.#begin(client);
      case 'late':
        if (this.chance(0.1)) await passAwake(GROUP, LEASE_TTL_MS / 2);
        return this.#renew(client, token);
      case 'old':
        return this.#renew(client, this.pick(client.tokens));
      case 'twice':
        await this.#release(client);
        await this.#send('DELETE', `/leases/${token}`, null);
        return;
      case 'crossed':
        await Promise.all([this.#renew(client, token), this.#release(client)]);
        return;
      case 'lost':
        await this.#send('PUT', `/leases/${token}`, null);
        return;
      case 'asks':
        this.#hear(client, await this.#ask(client));
        return;
    }
  }

  #reset(): Promise<void> {
    return this.chance(0.5) ? crashPool(GROUP) : resetPool(GROUP);
  }

  async #relimit(): Promise<void> {
    this.limit = this.pick([1, 2, 3, 4]);
    for (const client of this.#clients) {
      if (client.limitMax > 0) client.limitMax = Math.max(client.limitMax, this.limit);
    }
    await limitTo([group(GROUP, this.limit)]);
  }
}

/** The id of a lease, which its token begins with. */
function idOf(token: string): string {
  return token.split('.').slice(0, 2).join('.');
}

it(`holds the limit over ${FAULTS} faults, and everything is free in the end`, async () => {
  const world = new FaultsWorld(20_261_124);
  await limitTo([group(GROUP, world.limit)]);
  while (world.faults < FAULTS) {
    await world.act();
    if (world.chance(0.7)) await world.fault();
  }
  // They were there: else it has proven nothing.
  expect(world.judge.granted).toBeGreaterThan(FAULTS / 20);
  expect(world.judge.peak).toBeGreaterThan(2);
  await passAwake(GROUP, 2 * LEASE_TTL_MS);
  expect(await pool(GROUP).status()).toMatchObject({ in_use: 0, unclaimed: 0, queued: 0 });
}, 900_000);
