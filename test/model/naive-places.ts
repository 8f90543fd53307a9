import type { MemberSettings, GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import type { NaiveHold } from './naive-order.ts';

/** A lease by what its holder was told of where it runs; empty: the group named no members. */
interface NaivePlacedCall {
  readonly named: string;
}

interface NaivePlacesNaiveSite {
  readonly settings: GroupSettings;
  leases(): readonly (NaiveHold & NaivePlacedCall)[];
}

/** A member as far as its slots are concerned. */
export type NaivePosition = Pick<MemberSettings, 'slotsMax' | 'weight' | 'isAdaptive'> & {
  readonly id: string;
};

/** The upstream of all calls. */
const UPSTREAM = 'openai';

/**
 * Members of a naive group: where its leases count, the orphaned slots at each, and where calls that belong together
 * ran. All are enabled and of the first tier.
 */
export class NaivePlaces {
  readonly #site: NaivePlacesNaiveSite;
  readonly #orphaned = new Map<string, number>();
  /** The members of all grants, in their order. */
  #granted: string[] = [];
  readonly #belongs = new Map<string, { readonly member: string; readonly until: number }>();
  /** Later ids of members that changed their ids. */
  readonly #renamed = new Map<string, string>();

  constructor(site: NaivePlacesNaiveSite) {
    this.#site = site;
  }

  /** Where a lease counts: a group without members has but one; the key of the upstream is that of its successor. */
  countsAt({ named }: NaivePlacedCall): string {
    const { members } = this.#site.settings;
    if (members.length === 0) return '';
    if (named !== '') return this.#renamed.get(named) ?? named;
    return members.find(({ succeeds }) => succeeds === UPSTREAM)?.id ?? '';
  }

  /** Lists the members that serve, and all others where anything is held: these take nothing more. */
  all(): readonly NaivePosition[] {
    const serving = this.serving();
    const ids = [
      ...this.#site.leases().map((lease) => this.countsAt(lease)),
      ...this.#orphaned.keys(),
    ];
    const others = [...new Set(ids)].filter((id) => !serving.some((each) => each.id === id));
    return [...serving, ...others.map((id) => ({ id, slotsMax: 0, weight: 1, isAdaptive: false }))];
  }

  /** Counts the slots of which nobody has been heard since a reset, of one member or of all. */
  orphaned(member?: string): number {
    if (member !== undefined) return this.#orphaned.get(member) ?? 0;
    return [...this.#orphaned.values()].reduce((sum, slots) => sum + slots, 0);
  }

  /** Counts those that a lease may have which names a member: there, and of a group that named none. */
  orphanedFor({ member: named = '' }: { readonly member?: string }): number {
    const member = this.countsAt({ named });
    return this.orphaned(member) + (member === '' ? 0 : this.orphaned(''));
  }

  /** Takes slots out of those of a member, as many as there are. Returns how many. */
  claim(member: string, slots: number): number {
    const taken = Math.min(slots, this.orphaned(member));
    this.holdOrphaned(member, -taken);
    return taken;
  }

  holdOrphaned(member: string, slots: number): void {
    this.#orphaned.set(member, this.orphaned(member) + slots);
  }

  expire(): void {
    this.#orphaned.clear();
  }

  /** A member changes its id. */
  rename(from: string, to: string): void {
    this.#renamed.delete(to);
    for (const [id, later] of this.#renamed) if (later === from) this.#renamed.set(id, to);
    this.#renamed.set(from, to);
    this.#granted = this.#granted.map((id) => (id === from ? to : id));
    this.holdOrphaned(to, this.claim(from, Infinity));
  }

  /** The group names no members any more: whoever comes counts at its only one. */
  unplace(): void {
    const slots = this.orphaned();
    this.#orphaned.clear();
    this.holdOrphaned('', slots);
  }

  /** Until when each member is known at which calls belong together. */
  untils(): readonly number[] {
    return [...this.#belongs.values()].map(({ until }) => until);
  }

  /** Begins anew with what a row marks at each member. */
  recover(marks: readonly (readonly [member: string, slots: number])[]): void {
    this.#granted = [];
    this.#belongs.clear();
    this.#renamed.clear();
    this.#orphaned.clear();
    for (const [member, slots] of marks) this.holdOrphaned(member, slots);
    if (this.#site.settings.members.length === 0) this.unplace();
  }

  /** The number of the last grant at a member, over all members. -1 if there was none. */
  turnOf(id: string): number {
    return this.#granted.lastIndexOf(id);
  }

  noteGrant(lease: Pick<NaiveHold, 'holder'> & NaivePlacedCall, now: number): void {
    this.#granted.push(lease.named);
    this.noteRun(lease, now);
  }

  /** A call runs somewhere: those that belong together with it stay there. */
  noteRun(lease: Pick<NaiveHold, 'holder'> & NaivePlacedCall, now: number): void {
    const { members, affinity } = this.#site.settings;
    const key = this.#keyOf(lease.holder);
    if (members.length === 0 || key === null) return;
    this.#belongs.set(key, { member: this.countsAt(lease), until: now + affinity.forMs });
  }

  /** Lists the members that a call may go to. */
  possible({ excluded = [] }: Ticket): readonly NaivePosition[] {
    const serving = this.serving();
    if (this.#site.settings.members.length === 0) return serving;
    return serving.filter(({ id }) => !excluded.some((each) => each === id));
  }

  /** Lists the members at which calls are granted. */
  serving(): readonly NaivePosition[] {
    const { members, slotsMax, isAdaptive } = this.#site.settings;
    return members.length > 0 ? members : [{ id: '', slotsMax, weight: 1, isAdaptive }];
  }

  #keyOf({ tenant, agent, caller }: Ticket['holder']): string | null {
    const { by } = this.#site.settings.affinity;
    if (by === 'none') return null;
    if (by === 'caller') return `caller ${caller}`;
    return agent === null ? null : `agent ${agent} of ${tenant}`;
  }

  /** The member that a call belongs to, unless that has refused it. */
  ownOf({ holder, excluded = [] }: Ticket, now: number): string | null {
    const key = this.#keyOf(holder);
    const known = key === null ? undefined : this.#belongs.get(key);
    if (known === undefined || now >= known.until) return null;
    // A call that ran at no member when it was noted belongs to no later member either.
    const member = known.member === '' ? '' : this.countsAt({ named: known.member });
    return excluded.some((id) => id === member) ? null : member;
  }
}
