import {
  memberId,
  ticketOf,
  type LeaseId,
  type MemberId,
  type TicketId,
} from '../core/words/ids.ts';
import type { CallFilter, CorrectedSpend, SpendCorrection } from '../contract/rpc/group-rpc.ts';
import { allLedgers } from '../core/state.ts';
import { correctionsOf, spentIn, type NewCorrection, type Period } from '../core/parts/spend.ts';
import type { Holder, Lane } from '../core/words/ticket.ts';
import type { Batch } from './batch.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { ParkedAcquires } from './parked.ts';
import type { Shell } from './shell.ts';

/** The operators' side of a pool. An action is reported as done once no reset can undo it. */
export class Operator {
  readonly #shell: Shell;
  readonly #batch: Batch;
  readonly #parked: ParkedAcquires;

  readonly #link: DirectoryLink;

  constructor(shell: Shell, batch: Batch, parked: ParkedAcquires, link: DirectoryLink) {
    this.#shell = shell;
    this.#batch = batch;
    this.#parked = parked;
    this.#link = link;
  }

  async revoke(id: LeaseId): Promise<boolean> {
    this.#shell.apply({ kind: 'revoke', leaseId: id });
    const isRevoking = this.#shell.state.leases.get(id)?.phase === 'revoking';
    await this.#batch.written();
    return isRevoking;
  }

  /** Revokes the slots of all matching calls. Returns their tickets. */
  async revokeAll(filter: CallFilter, isDry: boolean): Promise<string[]> {
    const matched = [...this.#shell.state.leases.values()]
      .filter(({ phase, holder }) => phase === 'held' && matches(holder, filter))
      .map(({ id }) => id);
    const tickets = matched.map(ticketOf);
    if (isDry) return tickets;
    for (const id of matched) this.#shell.apply({ kind: 'revoke', leaseId: id });
    await this.#batch.written();
    return tickets;
  }

  /** Removes all matching calls from the queue. Returns their tickets. */
  dismissAll(filter: CallFilter, isDry: boolean): string[] {
    const matched = [...this.#shell.state.queue.byTicket.values()]
      .filter(({ ticket }) => matches(ticket.holder, filter))
      .map(({ ticket }) => ticket.id);
    if (!isDry) for (const id of matched) this.dismiss(id);
    return matched;
  }

  /** Corrects the spend of a budget, once for each id. Returns null if there is no such member. */
  async correctSpend(wanted: NewCorrection): Promise<CorrectedSpend | null> {
    // A pool that rests or was never called may not know its members yet.
    if (wanted.member !== null) await this.#link.catchUp();
    this.#shell.apply({ kind: 'correct_spend', correction: wanted });
    await this.#batch.written();
    const correction = this.#correction(wanted.id);
    return correction === null ? null : this.#corrected(correction);
  }

  /** Undoes a correction. Returns null if there is none with that id. */
  async undoCorrection(id: string): Promise<CorrectedSpend | null> {
    const before = this.#correction(id);
    if (before === null) return null;
    this.#shell.apply({ kind: 'undo_correction', id });
    await this.#batch.written();
    return this.#corrected(this.#correction(id) ?? before);
  }

  /** Lists the corrections of the budgets of the group and its members, latest first. */
  corrections(): readonly SpendCorrection[] {
    return allLedgers(this.#shell.state)
      .flatMap(({ controls }) => correctionsOf(controls.spend))
      .toSorted((a, b) => b.at - a.at)
      .map((each) => structuredClone(each));
  }

  #correction(id: string): SpendCorrection | null {
    return this.corrections().find((each) => each.id === id) ?? null;
  }

  #corrected(correction: SpendCorrection): CorrectedSpend {
    const { state } = this.#shell;
    const { member } = correction;
    const { controls } = (member === null ? null : state.members.get(memberId(member))) ?? state;
    const now = this.#shell.now();
    const of = (period: Period): number => spentIn(controls.spend.total, period, now);
    return { correction, spent: { hour: of('hour'), day: of('day'), month: of('month') } };
  }

  async relearn(): Promise<void> {
    this.#shell.apply({ kind: 'relearn' });
    await this.#batch.written();
  }

  /** Ends the ejection of a member. Returns false if there is no such member. */
  async bringBack(member: MemberId): Promise<boolean> {
    // A pool that rests or was never called may not know its members yet, nor that the member is enabled.
    await this.#link.catchUp();
    this.#shell.apply({ kind: 'bring_back', member });
    await this.#batch.written();
    return this.#shell.state.settings.members.some(({ id }) => id === member);
  }

  /** Waiters are never stored, so this waits for no write. */
  promote(id: TicketId, lane: Lane | null, toFront: boolean): boolean {
    const waits = this.#waits(id);
    this.#shell.apply({ kind: 'promote', ticketId: id, lane, toFront });
    return waits;
  }

  dismiss(id: TicketId): boolean {
    if (!this.#waits(id)) return false;
    this.#parked.dismiss(id);
    this.#shell.apply({ kind: 'cancel', ticketId: id });
    return true;
  }

  #waits(id: TicketId): boolean {
    return this.#shell.state.queue.byTicket.has(id);
  }
}

function matches(holder: Holder, { tenant, agent, model, upstream }: CallFilter): boolean {
  return (
    (tenant === undefined || holder.tenant === tenant) &&
    (agent === undefined || holder.agent === agent) &&
    (model === undefined || holder.model === model) &&
    (upstream === undefined || holder.upstream === upstream)
  );
}
