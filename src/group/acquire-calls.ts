import type {
  AcquireAnswer,
  AcquireRequest,
  ResumeAnswer,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import { isStopped } from '../core/capacity.ts';
import type { GroupEvent } from '../core/events.ts';
import { standing } from '../core/parking.ts';
import { hasEnded, isOfNewer } from '../core/unclaimed.ts';
import { leaseIdOf, ticketId, type LeaseId, type TicketId } from '../core/words/ids.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { HandOver } from './hand-over.ts';
import type { ParkedAcquires } from './parked-acquires.ts';
import type { PauseWaiters } from './pause-waiters.ts';
import { claimFrom, ticketFrom } from './requests.ts';
import type { Shell } from './shell.ts';

interface AcquireCallsParts {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly parked: ParkedAcquires;
  readonly pauseWaiters: PauseWaiters;
  readonly handOver: HandOver;
}

/** Callers' side of a pool: calls for a slot, for one that is held already, and for the end of a pause. */
export class AcquireCalls {
  readonly #parts: AcquireCallsParts;
  #passedUnlimited = 0;

  constructor(parts: AcquireCallsParts) {
    this.#parts = parts;
  }

  /** Calls that Workers let pass without a slot, as far as they have told this instance. */
  get passedUnlimited(): number {
    return this.#passedUnlimited;
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    const { shell, link, parked, handOver } = this.#parts;
    const id = ticketId(request.ticketId);
    const leaseId = leaseIdOf(id, request.attempt);
    const { configVersion, sinceVersion = configVersion } = request;
    const isBehind = sinceVersion > link.definition.version;
    if (isBehind || (link.isToRead(configVersion) && this.#isNew(id, leaseId))) {
      await link.catchUp(configVersion);
    }
    link.assume(request.assumed);
    this.#passedUnlimited += request.passedUnlimited;
    if (link.isRetired || handOver.hasBegun) return parked.moved();
    const missed = parked.takeMissed(id);
    if (missed !== undefined) return missed;
    // Its Worker may not have heard yet of a key that was revoked, or of a route that goes elsewhere.
    const isOld = configVersion < link.definition.version;
    if (isOld && this.#isNew(id, leaseId)) return parked.moved();
    if (shell.state.queue.byTicket.has(id)) link.hear();
    const superseded = parked.current(id);
    const answer = this.#park(id, {
      kind: 'acquire',
      leaseId,
      sliceMs: request.sliceMs,
      mayAskLater: request.mayAskLater ?? false,
      isAnew: request.isAnew ?? false,
      ticket: ticketFrom(request, shell.now()),
    });
    superseded?.(parked.pending({ ...standing(shell.state, id, shell.now()), askAgainMs: null }));
    return (await answer) as AcquireAnswer;
  }

  /** @throws an instance that a newer one has replaced, which granted the lease */
  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    const { link, parked, shell } = this.#parts;
    link.assume(request.assumed);
    const claim = claimFrom(request);
    if (isOfNewer(shell.state, claim)) throw new Error('a newer instance has granted the lease');
    const id = claim.ticketId;
    const superseded = parked.current(id);
    const answer = this.#park(id, { kind: 'resume', claim });
    // Who asks for a lease that is held by its id may do so beside its holder, and asks again.
    const again = (): AcquireAnswer =>
      parked.pending({ ...standing(shell.state, id, shell.now()), askAgainMs: null });
    superseded?.(claim.isById === true ? again() : parked.gone());
    return (await answer) as ResumeAnswer;
  }

  cancel(id: TicketId): void {
    this.#parts.shell.apply({ kind: 'cancel', ticketId: id });
  }

  /** Resolves when the group is not paused (true) or the slice is over. */
  opened(sliceMs: number): Promise<boolean> {
    const { shell, link, pauseWaiters } = this.#parts;
    const now = shell.now();
    if (!isStopped(shell.state, now)) return Promise.resolve(true);
    link.hear();
    const opened = pauseWaiters.park(sliceMs, now);
    shell.arm();
    return opened;
  }

  /** Tells whether a ticket comes for the first time. All others keep what they have, whatever has changed. */
  #isNew(id: TicketId, leaseId: LeaseId): boolean {
    const { state } = this.#parts.shell;
    const isKnown = state.queue.byTicket.has(id) || state.leases.has(leaseId);
    if (isKnown || state.bound.grantedBefore.has(leaseId)) return false;
    return !hasEnded(state, leaseId, id);
  }

  /** Parks the caller until the core has an answer for its ticket. */
  #park(id: TicketId, event: GroupEvent): Promise<AcquireAnswer | ResumeAnswer> {
    const { shell, parked } = this.#parts;
    return new Promise((resolve) => {
      parked.park(id, resolve);
      shell.apply(event);
    });
  }
}
