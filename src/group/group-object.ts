import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../contract/env.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupDefinition,
  GroupRpc,
  LeaseInfo,
  PoolStatus,
  RenewAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../contract/group-rpc.ts';
import type { Effect, GroupEvent } from '../core/events.ts';
import { instant, leaseId, leaseIdOf, ticketId, type InstantMs } from '../core/ids.ts';
import type { LeaseId, TicketId } from '../core/ids.ts';
import type { Outcome } from '../core/outcome.ts';
import { recover } from '../core/recover.ts';
import type { GroupState, Lease } from '../core/state.ts';
import { nextWakeAt, step } from '../core/step.ts';
import type { Holder } from '../core/ticket.ts';
import { standing } from '../core/waiting.ts';
import { Batch } from './batch.ts';
import { identityOf, settingsOf, type PoolIdentity } from './definition.ts';
import { DirectoryLink } from './directory-link.ts';
import { LeaseHandle, type LeaseKeeper } from './lease-handle.ts';
import { Renewals } from './renewals.ts';
import { leaseInfos, poolStatus } from './status.ts';
import { GroupStore } from './store.ts';

/** At most one write per object in this time for the renewals' sake. */
const HEARTBEAT_EVERY_MS = 10_000;

/** Attachments of a later instance are larger than all of an earlier one, at this many a millisecond. */
const ATTACHMENTS_PER_MS = 1_000;

type Answer = AcquireAnswer | ResumeAnswer;

/**
 * One pool of slots. It decides nothing itself: calls become events of the core, the core's effects
 * become rows and answers.
 */
export class GroupObject extends DurableObject<Env> implements GroupRpc {
  readonly #identity: PoolIdentity;
  readonly #store: GroupStore;
  readonly #link: DirectoryLink;
  readonly #state: GroupState;
  readonly #batch = new Batch((saved, dropped) => this.#write(saved, dropped));
  readonly #renewals = new Renewals();
  readonly #keeper: LeaseKeeper;
  /** The parked ask of each ticket. */
  readonly #asks = new Map<TicketId, (answer: Answer) => void>();
  #passedUnlimited = 0;
  #heartbeatAt = 0;
  #clock = instant(0);
  #timer: ReturnType<typeof setTimeout> | null = null;
  #timerAt = Infinity;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#identity = identityOf(ctx.id.name ?? '');
    this.#store = new GroupStore(ctx.storage.sql, env.BOOT_ID ?? '');
    this.#link = new DirectoryLink(
      env,
      this.#store,
      this.#identity,
      (work) => ctx.waitUntil(work),
      (moved) => this.#definitionChanged(moved),
    );
    this.#keeper = {
      renew: (id, status) => this.#renew(id, status),
      release: (id, outcome, status) => this.#release(id, outcome, status),
      detach: (id, attachment) => this.#apply({ kind: 'detach', leaseId: id, attachment }),
    };
    const now = this.#now();
    const recovered = recover(
      settingsOf(this.#link.definition),
      this.#store.loadLeases(),
      now * ATTACHMENTS_PER_MS,
      now,
    );
    this.#state = recovered.state;
    this.#perform(recovered.effects);
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    if (request.configVersion > this.#link.definition.version) await this.#link.catchUp();
    this.#link.assume(request.assumed);
    this.#passedUnlimited += request.passedUnlimited;
    if (this.#link.isRetired) return this.#moved();
    const id = ticketId(request.ticketId);
    const superseded = this.#asks.get(id);
    const answer = this.#ask(id, {
      kind: 'acquire',
      leaseId: leaseIdOf(id, request.attempt),
      sliceMs: request.sliceMs,
      ticket: {
        id,
        holder: holderOf(request),
        enqueuedAt: instant(request.enqueuedAt),
        deadlineAt: request.deadlineAt === null ? null : instant(request.deadlineAt),
        wait: request.wait,
      },
    });
    superseded?.(this.#pending(standing(this.#state, id)));
    return (await answer) as AcquireAnswer;
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    this.#link.assume(request.assumed);
    const id = ticketId(request.ticketId);
    const superseded = this.#asks.get(id);
    const answer = this.#ask(id, {
      kind: 'resume',
      leaseId: leaseId(request.leaseId),
      ticketId: id,
      holder: holderOf(request),
    });
    superseded?.({ kind: 'gone' });
    return (await answer) as ResumeAnswer;
  }

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  async cancel(ticket: string): Promise<void> {
    this.#apply({ kind: 'cancel', ticketId: ticketId(ticket) });
  }

  // oxlint-disable-next-line require-await -- as above
  async release(id: string, outcome: Outcome, status: number | null): Promise<void> {
    this.#release(leaseId(id), outcome, status);
  }

  // oxlint-disable-next-line require-await -- as above
  async revoke(id: string): Promise<boolean> {
    this.#apply({ kind: 'revoke', leaseId: leaseId(id) });
    return this.#state.leases.get(leaseId(id))?.phase === 'revoking';
  }

  // oxlint-disable-next-line require-await -- as above
  async reconfigure(pushed: GroupDefinition): Promise<void> {
    this.#link.adopt(pushed);
  }

  // oxlint-disable-next-line require-await -- as above
  async status(): Promise<PoolStatus> {
    this.#apply({ kind: 'tick' });
    const { definition } = this.#link;
    return poolStatus(this.#identity, definition, this.#state, this.#passedUnlimited, this.#now());
  }

  // oxlint-disable-next-line require-await -- as above
  async leases(): Promise<LeaseInfo[]> {
    this.#apply({ kind: 'tick' });
    return leaseInfos(this.#state, this.#now());
  }

  /** Parks the caller until the core has an answer for its ticket. */
  #ask(id: TicketId, event: GroupEvent): Promise<Answer> {
    return new Promise((resolve) => {
      this.#asks.set(id, resolve);
      this.#apply(event);
    });
  }

  #release(id: LeaseId, outcome: Outcome, status: number | null): void {
    this.#link.observe(status);
    this.#apply({ kind: 'release', leaseId: id, outcome });
  }

  async #renew(id: LeaseId, status: number | null): Promise<RenewAnswer> {
    this.#link.observe(status);
    this.#apply({ kind: 'renew', leaseId: id });
    const phase = this.#state.leases.get(id)?.phase ?? 'cooling';
    if (phase === 'cooling') return 'gone';
    if (phase === 'revoking') return 'revoking';
    const parked = this.#renewals.park(id, this.#now());
    this.#arm();
    const answer = await parked;
    if (answer === 'ok') this.#heartbeat();
    return answer;
  }

  #definitionChanged(moved: boolean): void {
    this.#apply({ kind: 'reconfigure', settings: settingsOf(this.#link.definition) });
    if (moved) this.#apply({ kind: 'move' });
  }

  #apply(event: GroupEvent): void {
    this.#perform(step(this.#state, event, this.#now()));
    if (this.#state.leases.size + this.#state.queue.line.length === 0) this.#link.leave();
    this.#arm();
  }

  #perform(effects: readonly Effect[]): void {
    for (const effect of effects) this.#performOne(effect);
    this.#batch.settle();
  }

  #performOne(effect: Effect): void {
    switch (effect.kind) {
      case 'save':
      case 'drop':
        return this.#batch.note(effect);
      case 'grant':
        return this.#grant(effect.ticketId, effect.lease);
      case 'pending':
        return this.#answer(effect.ticketId, this.#pending(effect));
      case 'reject': {
        const { rejection, ticketId: id } = effect;
        const configVersion = this.#link.definition.version;
        return this.#answer(id, { kind: 'rejected', rejection, configVersion });
      }
      case 'gone':
        return this.#answer(effect.ticketId, { kind: 'gone' });
      case 'moved':
        return this.#answer(effect.ticketId, this.#moved());
      case 'revoked':
        return this.#renewals.answer(effect.leaseId, 'revoking');
      case 'ended':
        return this.#renewals.answer(effect.leaseId, 'gone');
    }
  }

  #grant(id: TicketId, lease: Lease): void {
    const ask = this.#asks.get(id);
    this.#asks.delete(id);
    const { attachment } = lease;
    this.#batch.afterWrite(() =>
      ask?.({
        kind: 'granted',
        lease: new LeaseHandle(this.#keeper, lease.id, attachment),
        leaseId: lease.id,
        attachment,
        configVersion: this.#link.definition.version,
      }),
    );
  }

  #answer(id: TicketId, answer: Answer): void {
    const ask = this.#asks.get(id);
    this.#asks.delete(id);
    ask?.(answer);
  }

  #pending(at: { readonly position: number; readonly estimateMs: number }): AcquireAnswer {
    const { position, estimateMs } = at;
    const configVersion = this.#link.definition.version;
    return { kind: 'pending', position, estimateMs, configVersion };
  }

  #moved(): AcquireAnswer {
    return { kind: 'moved', configVersion: this.#link.definition.version };
  }

  /** An instance that cannot write is not the current one, or is lost: nothing of it may stay. */
  #write(saved: readonly Lease[], dropped: readonly LeaseId[]): void {
    try {
      this.#store.writeLeases(saved, dropped);
    } catch (error) {
      this.ctx.abort(`the lease rows cannot be written: ${String(error)}`);
    }
  }

  /** The answer to a renewal waits for this write, which fails once another instance has taken over. */
  #heartbeat(): void {
    const now = this.#now();
    if (now - this.#heartbeatAt < HEARTBEAT_EVERY_MS) return;
    this.#heartbeatAt = now;
    this.#store.heartbeat(now);
  }

  /** One timer for everything: the runtime allows 10,000, and every waiter has a deadline. */
  #arm(): void {
    const now = this.#now();
    const at = Math.min(nextWakeAt(this.#state, now), this.#renewals.nextDueAt());
    if (at >= this.#timerAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, at - now));
  }

  #wake(): void {
    this.#timer = null;
    this.#timerAt = Infinity;
    this.#renewals.answerDue(this.#now());
    this.#apply({ kind: 'tick' });
  }

  /** Never steps back, though the wall clock may. */
  #now(): InstantMs {
    this.#clock = instant(Math.max(this.#clock, Date.now()));
    return this.#clock;
  }
}

function holderOf(from: AcquireRequest | ResumeRequest): Holder {
  return { caller: from.caller, agent: from.agent, upstream: from.upstream, model: from.model };
}
