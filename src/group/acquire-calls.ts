import type {
  AcquireAnswer,
  AcquireRequest,
  ResumeAnswer,
  ResumeRequest,
  RenewByIdAnswer,
  HandedPool,
  LeaseRpc,
} from '../contract/rpc/group-rpc.ts';
import type { GroupEvent } from '../core/events.ts';
import { queuePlace } from '../core/outlook.ts';
import { hasEnded, isOfNewer } from '../core/orphaned.ts';
import { leaseIdOf, type InstantMs, type LeaseId, type TicketId } from '../core/words/ids.ts';
import { SUPERSEDED_ASK_AGAIN_MS } from '../core/words/settings.ts';
import { countsUntil } from '../core/parts/bound.ts';
import { BoundedSet } from '../core/parts/bounded-map.ts';
import { handedGroupOf } from '../core/hand-over.ts';
import type { Observation } from './observe/observation.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { ParkedAcquires } from './parked.ts';
import { instantBy, ticketFrom } from './requests.ts';
import type { Shell } from './shell.ts';
import type { Leases, PoolVerification } from './leases.ts';
import type { Batch } from './batch.ts';
import { firstAttachment } from './lease-handle.ts';

/** Acquire calls: of callers, by lease id, and with the leases that an unverified pool hands over. */

interface AcquireCallsParts {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly parked: ParkedAcquires;
  readonly handOver: HandOver;
  /** Attempts that ended in an earlier instance. Some of them may have been returned unused. */
  readonly endedBefore: ReadonlySet<LeaseId>;
}

/** The callers' side of a pool: requests for a slot, and for a slot that is already held. */
export class AcquireCalls {
  readonly #parts: AcquireCallsParts;
  #passedUnlimited = 0;
  #passedUnlimitedAt: InstantMs | null = null;

  constructor(parts: AcquireCallsParts) {
    this.#parts = parts;
  }

  /** Calls that started without a slot, as far as Workers reported them to this instance. */
  get passedUnlimited(): number {
    return this.#passedUnlimited;
  }

  /** When Workers last reported such calls to this instance, or null if never. */
  get passedUnlimitedAt(): InstantMs | null {
    return this.#passedUnlimitedAt;
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    const { shell, link, parked, handOver } = this.#parts;
    const arrivedAt = shell.now();
    const { configVersion, sinceVersion, ticket } = request;
    const { id } = ticket;
    const isBehind = sinceVersion > link.definition.version;
    if (isBehind || (link.mustRead(configVersion) && this.#isNew(id, request))) {
      await link.catchUp(configVersion);
    }
    link.assume(request.assumed);
    if (request.passedUnlimited > 0) {
      this.#passedUnlimited += request.passedUnlimited;
      this.#passedUnlimitedAt = arrivedAt;
    }
    if (link.isRetired || handOver.hasBegun) return parked.moved();
    const missed = parked.takeMissed(id);
    if (missed !== undefined) return missed;
    // Its Worker may not yet know that a key was revoked or a route changed.
    const isOld = configVersion < link.definition.version;
    if (isOld && this.#isNew(id, request)) return parked.moved();
    if (shell.state.queue.byTicket.has(id)) link.refreshIfPaused();
    const superseded = parked.current(id);
    const answer = this.#park(id, {
      kind: 'acquire',
      leaseId: this.#leaseIdFor(id, request),
      sliceMs: request.sliceMs,
      mayAskLater: request.mayAskLater,
      isAnew: request.isAnew ?? false,
      ticket: ticketFrom(request, shell.now(), shell.aheadMs),
    });
    superseded?.(this.#superseded(id, ticket.isById === true));
    const reply = (await answer) as AcquireAnswer;
    if (reply.kind !== 'granted') return reply;
    const { expiresAt, grantedAt } = reply;
    if (expiresAt === undefined || grantedAt === undefined) return reply;
    const byHolder = (at: number): number => instantBy(request.sentAt, arrivedAt, at);
    return { ...reply, expiresAt: byHolder(expiresAt), grantedAt: byHolder(grantedAt) };
  }

  /** @throws if a newer instance has replaced this one and granted the lease */
  async resume(claim: ResumeRequest): Promise<ResumeAnswer> {
    const { link, parked, shell } = this.#parts;
    link.assume(claim.assumed);
    if (isOfNewer(shell.state, claim)) throw new Error('a newer instance has granted the lease');
    const id = claim.ticketId;
    const superseded = parked.current(id);
    const answer = this.#park(id, { kind: 'resume', claim });
    // A request may ask for a lease that another request holds by its id.
    superseded?.(claim.isById === true ? this.#superseded(id, true) : parked.gone());
    return (await answer) as ResumeAnswer;
  }

  cancel(id: TicketId): void {
    this.#parts.shell.apply({ kind: 'cancel', ticketId: id });
  }

  /**
   * Returns the answer to an acquire call that a newer one of its ticket has superseded. The caller may ask again at
   * once.
   *
   * For a lease held by its id, the newer call may belong to another request. If both retried at once, they would
   * supersede each other forever.
   */
  #superseded(id: TicketId, isById: boolean): AcquireAnswer {
    const { shell, parked } = this.#parts;
    const askAgainMs = isById ? SUPERSEDED_ASK_AGAIN_MS : null;
    return parked.pending({ ...queuePlace(shell.state, id, shell.now()), askAgainMs });
  }

  /**
   * Returns the lease that a request asks for. Several requests may ask for a lease that is held by its id, and each
   * may have returned it while it waited for another group. All of them continue with the same attempt. An instance
   * that only knows that an attempt has ended skips it, except in the last group, to which leases are never returned.
   */
  #leaseIdFor(
    id: TicketId,
    { attempt: requested, ticket: { isById = false, waitsElsewhere } }: AcquireRequest,
  ): LeaseId {
    if (!isById) return leaseIdOf(id, requested);
    const { parked, endedBefore } = this.#parts;
    let attempt = parked.attemptOf(id, requested);
    while (waitsElsewhere && endedBefore.has(leaseIdOf(id, attempt))) attempt += 1;
    return leaseIdOf(id, attempt);
  }

  /** Whether a ticket is new. Others keep what they have, whatever has changed. */
  #isNew(id: TicketId, request: AcquireRequest): boolean {
    const { state } = this.#parts.shell;
    const leaseId = this.#leaseIdFor(id, request);
    const isKnown = state.queue.byTicket.has(id) || state.leases.has(leaseId);
    if (isKnown || state.bound.grantedBefore.has(leaseId)) return false;
    return !hasEnded(state, leaseId, id);
  }

  #park(id: TicketId, event: GroupEvent): Promise<AcquireAnswer | ResumeAnswer> {
    const { shell, parked } = this.#parts;
    return new Promise((resolve) => {
      parked.park(id, resolve);
      shell.apply(event);
    });
  }
}

interface LeasesByIdParts {
  readonly shell: Shell;
  readonly parked: ParkedAcquires;
  readonly acquires: AcquireCalls;
  readonly leases: Leases;
  readonly verification: PoolVerification;
}

/** Serves holders that hold leases only by their ids. No call of theirs is parked between two renewals. */
export class LeasesById {
  readonly #parts: LeasesByIdParts;

  constructor(parts: LeasesByIdParts) {
    this.#parts = parts;
  }

  /** @throws if a newer instance has replaced this one and granted the lease */
  async renew(id: LeaseId, status: number | null, held: ResumeRequest): Promise<RenewByIdAnswer> {
    const { shell, parked, acquires, leases, verification } = this.#parts;
    const arrivedAt = shell.now();
    const claim = { ...held, isById: true };
    if (isOfNewer(shell.state, claim)) throw new Error('a newer instance has granted the lease');
    verification.note(status);
    shell.apply({ kind: 'renew', leaseId: id, claim });
    const lease = shell.state.leases.get(id);
    if (lease?.phase === 'revoking') return { kind: 'revoking' };
    if (lease?.phase === 'cooling') return parked.gone();
    if (lease !== undefined) {
      const { attachment, until } = lease;
      await leases.verifyCurrent(true);
      const expiresAt = countsUntil(shell.state.bound, until);
      return { kind: 'ok', attachment, expiresAt: instantBy(held.sentAt, arrivedAt, expiresAt) };
    }
    const taken = await acquires.resume(claim);
    if (taken.kind === 'gone') return taken;
    const { attachment, expiresAt = shell.now() } = taken;
    return { kind: 'ok', attachment, expiresAt: instantBy(held.sentAt, arrivedAt, expiresAt) };
  }
}

/** Maximum hand-overs that an object remembers. The shared pool of many partitions receives many. */
const VERIFICATIONS_MAX = 1_000;

interface HandOverParts {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly batch: Batch;
  readonly observation: Observation;
  readonly verification: PoolVerification;
  readonly leases: Leases;
}

/** Both sides of the hand-over of a verified pool from the object with all unverified pools to its own object. */
export class HandOver {
  readonly #parts: HandOverParts;
  readonly #verificationId = crypto.randomUUID();
  readonly #received = new BoundedSet<string>(VERIFICATIONS_MAX);
  #hasBegun = false;

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** Whether the pool's own object decides from now on, or is about to. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /**
   * Starts the hand-over. Waiting and new calls are sent to the pool's own object, which continues with the returned
   * state.
   */
  begin(): HandedPool {
    const { shell, link, observation } = this.#parts;
    this.#hasBegun = true;
    shell.apply({ kind: 'move' });
    return {
      ...handedGroupOf(shell.state, shell.now()),
      trialId: this.#verificationId,
      assumed: link.definition.assumed,
      definition: link.pushed,
      calls: observation.callLines,
    };
  }

  /** Continues here, because the pool's own object could not take over. */
  cancel(): void {
    this.#hasBegun = false;
  }

  /** Drops the leases that the pool's own object has taken over. Their holders are redirected to it. */
  end(): void {
    const { shell } = this.#parts;
    for (const id of shell.state.leases.keys()) {
      shell.apply({ kind: 'release', leaseId: id, outcome: 'unused', settlement: null });
    }
  }

  /** Receives a handed-over pool in its own object. */
  async receive(handed: HandedPool): Promise<LeaseRpc[]> {
    const { shell, link, batch, observation, verification, leases } = this.#parts;
    const { trialId: verificationId, assumed, definition, calls, ...group } = handed;
    if (definition !== null) link.take(definition);
    link.assume(assumed);
    const isNew = !verification.isStored;
    const isRepeat = this.#received.has(verificationId);
    this.#received.add(verificationId);
    if (!isRepeat) observation.adoptCalls(calls);
    verification.accept();
    const first = firstAttachment(shell.now());
    shell.apply({ kind: 'take_over', handed: group, isNew, isRepeat, firstAttachment: first });
    await batch.written();
    return group.leases.map(({ id }) =>
      leases.handle(id, shell.state.leases.get(id)?.attachment ?? 0),
    );
  }
}
