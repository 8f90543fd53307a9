import type { Effect } from '../core/events.ts';
import type { TicketId } from '../core/words/ids.ts';
import type { Lease } from '../core/state.ts';
import type { Asks } from './asks.ts';
import type { Batch } from './batch.ts';
import { LeaseHandle, type LeaseKeeper } from './lease-handle.ts';
import type { Renewals } from './renewals.ts';

/** What the effects of the core act on. */
interface Stage {
  readonly batch: Batch;
  readonly asks: Asks;
  readonly renewals: Renewals;
  readonly keeper: LeaseKeeper;
  /** What a grant tells besides its lease. */
  readonly said: () => { readonly configVersion: number; readonly wantsServed?: boolean };
}

/** Turns the effects of the core into rows and answers. */
export class Performer {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  perform(effects: readonly Effect[]): void {
    for (const effect of effects) this.#performOne(effect);
    this.#stage.batch.settle();
  }

  #performOne(effect: Effect): void {
    const { batch, asks, renewals } = this.#stage;
    switch (effect.kind) {
      case 'save':
      case 'drop':
      case 'keep':
        return batch.note(effect);
      case 'grant':
        return this.#grant(effect.ticketId, effect.lease);
      case 'pending':
      case 'reject':
      case 'declined':
      case 'gone':
      case 'moved':
        return asks.answer(effect);
      case 'revoked':
        return renewals.answer(effect.leaseId, 'revoking');
      case 'ended':
        return renewals.answer(effect.leaseId, 'gone');
    }
  }

  #grant(id: TicketId, { id: leaseId, attachment }: Lease): void {
    const { batch, asks, keeper, said } = this.#stage;
    const ask = asks.take(id);
    batch.afterWrite(() =>
      ask?.({
        kind: 'granted',
        lease: new LeaseHandle(keeper, leaseId, attachment),
        leaseId,
        attachment,
        ...said(),
      }),
    );
  }
}
