import { demandOf } from '../../src/core/parts/demand.ts';
import { UNMETERED } from '../../test/support/core-builders.ts';
import { agentAccount, catchUp, NO_AGENT, tenantAccount } from '../../src/core/parts/accounts.ts';
import { waitersAhead } from '../../src/core/estimate.ts';
import type { GroupEvent } from '../../src/core/events.ts';
import { after, instant, leaseIdOf, ticketId, type InstantMs } from '../../src/core/words/ids.ts';
import { ageOf } from '../../src/core/order.ts';
import { enqueue, queueLength, resettle, type Waiter } from '../../src/core/parts/queue.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import { WAITERS_MAX } from '../../src/group/parked.ts';
import { emptyState } from '../../src/core/recover.ts';
import type { GroupState } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import { LANES, type Ticket } from '../../src/core/words/ticket.ts';

/** How many tenants and agents share the waiters. */
export interface Shape {
  readonly name: string;
  readonly tenants: number;
  readonly agentsEach: number;
  readonly byAgent?: boolean;
}

export const SHAPES: readonly Shape[] = [
  { name: '1 tenant', tenants: 1, agentsEach: 1 },
  { name: '50 tenants, 20 agents each', tenants: 50, agentsEach: 20 },
  { name: '5,000 tenants', tenants: 5_000, agentsEach: 1 },
  { name: '1 tenant, 100 agents that share', tenants: 1, agentsEach: 100, byAgent: true },
];

const SLOTS = 10;
const SLICE_MS = 25_000;

/** Time-outs and bounds that never matter here. */
const SETTINGS: Omit<GroupSettings, 'byAgent'> = {
  ...UNMETERED,
  slotsMax: SLOTS,
  queueLengthMax: Infinity,
  timeoutMs: 1e12,
  paused: false,
  releaseCooldownMs: 0,
  cancelCooldownMs: 0,
  failureCooldownMs: 0,
  laneShares: { high: 0, normal: 0.1, low: 0.05 },
  ageCreditMs: 120_000,
  weights: {},
  reserved: {},
  reservedLanes: {},
  slotsMaxEach: Infinity,
  slotsMaxEachAgent: Infinity,
  slotsPerCallMax: 8,
  queueLengthMaxEach: Infinity,
  queueLengthMaxEachAgent: Infinity,
  nested: 'reject',
  isDraining: false,
  isDryRun: false,
  members: [],
  affinity: { by: 'agent', forMs: 300_000, waitMs: 2_000 },
};

/** A group in which all slots are in use and many wait. */
export class Crowd {
  readonly state: GroupState;
  now: InstantMs = instant(1e12);
  readonly #shape: Shape;
  #count = 0;
  #seed = 1;

  constructor(shape: Shape) {
    this.#shape = shape;
    this.state = emptyState({ ...SETTINGS, byAgent: shape.byAgent ?? false }, 1);
    for (let slot = 0; slot < SLOTS; slot += 1) this.ask(this.ticket());
  }

  /** The next ticket that comes, with strings of its own as if it came over the wire. */
  ticket(): Ticket {
    const { tenants, agentsEach } = this.#shape;
    const number = this.#count++;
    const tenant = number % tenants;
    const name = `${number.toString(16).padStart(8, '0')}-8e07-4b52-9b8c-6f0f6a1f9d3e`;
    const ticket: Ticket = {
      id: ticketId(name),
      holder: {
        tenant: `key_${tenant}_5f2b9c81d0`,
        agent: agentsEach === 1 ? null : `session-${this.#below(agentsEach)}-41d8`,
        caller: `key_${tenant}_5f2b9c81d0`,
        upstream: 'anthropic',
        model: 'claude-opus-4-1',
      },
      lane: LANES[this.#below(10) < 8 ? 1 : this.#below(3)] ?? 'normal',
      slots: 1,
      enqueuedAt: instant(this.now - this.#below(20)),
      agentStartedAt: null,
      deadlineAt: null,
      wait: true,
      isTry: false,
      waitsElsewhere: false,
      parents: [],
      estimate: null,
    };
    return structuredClone(ticket);
  }

  /** Lets a ticket ask; past the bound of a real group, with the functions that it would come to. */
  ask(ticket: Ticket): void {
    if (queueLength(this.state.queue) < WAITERS_MAX) this.send(this.askOf(ticket));
    else this.#lineUp(ticket);
  }

  askOf(ticket: Ticket): GroupEvent {
    return { kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs: SLICE_MS };
  }

  send(event: GroupEvent): void {
    step(this.state, event, this.now);
  }

  fill(waiters: number): void {
    while (queueLength(this.state.queue) < waiters) {
      this.now = after(this.now, 1);
      this.ask(this.ticket());
    }
  }

  /** A slot comes back, and the one whose turn it is gets it. */
  grant(): void {
    const [lease] = this.state.leases.keys();
    if (lease !== undefined) {
      this.send({ kind: 'release', leaseId: lease, outcome: 'success', settlement: null });
    }
  }

  #lineUp(ticket: Ticket): void {
    const { accounts, queue, settings } = this.state;
    const tenant = tenantAccount(accounts, ticket.holder.tenant);
    const key = ticket.holder.agent ?? NO_AGENT;
    const agent = agentAccount(accounts, tenant, key, this.now, ticket.enqueuedAt);
    const { lines, byTenant } = queue.lanes[ticket.lane];
    const level = lines[0]?.tenant.shares[ticket.lane].service ?? 0;
    if (!byTenant.has(tenant)) catchUp(tenant.shares[ticket.lane], level);
    resettle(queue, tenant);
    const sliceEndsAt = after(this.now, SLICE_MS);
    const waiter: Waiter = {
      ticket,
      leaseId: leaseIdOf(ticket.id, 1),
      demand: demandOf(
        this.state.controls.factors,
        { ...this.state.settings.rates, usd: null },
        ticket,
      ),
      tenant,
      agent,
      arrivedAt: this.now,
      arrival: null,
      sequence: this.state.nextSequence++,
      deadlineAt: after(ticket.enqueuedAt, settings.timeoutMs),
      age: ageOf(ticket, agent.startedAt, settings),
      lane: ticket.lane,
      isAnew: false,
      isPromoted: false,
      sliceEndsAt,
      orphanAt: sliceEndsAt,
      heldOutUntil: null,
    };
    enqueue(queue, waiter);
    waitersAhead(this.state, waiter);
  }

  #below(bound: number): number {
    this.#seed = (this.#seed * 48_271) % 2_147_483_647;
    return this.#seed % bound;
  }
}
