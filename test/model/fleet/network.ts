import type { Clock } from '../simulator/clock.ts';
import type { InstanceAnswer, Instance, Reply } from './instance.ts';

export type MessageKind =
  | 'ask'
  | 'renew'
  | 'resume'
  | 'release'
  | 'release_by_id'
  | 'detach'
  | 'keep_loan'
  | 'give_back';

/** A sender of messages, which hears the answers. */
export interface NetworkParty {
  /** Nothing of what it sends or hears gets through before this. */
  readonly cutUntil: number;
}

/** The fate of one message and of its answer. */
export interface Fate {
  readonly requestMs: number;
  readonly answerMs: number;
  readonly lost: 'no' | 'request' | 'answer';
  /** How long after the first time it is delivered once more; null: it is not. */
  readonly againMs: number | null;
  /** Messages by the name of the group: one reaches an instance that was replaced. */
  readonly isStale: boolean;
}

const GOOD: Fate = {
  requestMs: 0,
  answerMs: 0,
  lost: 'no',
  againMs: null,
  isStale: false,
};

export interface NetworkMessage {
  readonly of: MessageKind;
  readonly call: NetworkParty;
  /** The instance that it goes to; null: whichever answers to the name of the group when it arrives. */
  readonly to: Instance | null;
  readonly deliver: (instance: Instance, reply: Reply) => void;
  /** Hears the answer; `from`: whose it is. */
  readonly hear: (answer: InstanceAnswer, from: Instance) => void;
  /** It is on its way, for the first time or once more. */
  readonly onCarry?: () => void;
  /** Its answer was lost. */
  readonly onLost?: (answer: InstanceAnswer, from: Instance) => void;
}

/** Carries messages: each kind has its own line of fates to come, and is carried well where none is left. */
export class Network {
  readonly #clock: Clock;
  readonly #byName: (isStale: boolean) => Instance;
  readonly #fates = new Map<MessageKind, Fate[]>();
  /** Messages that were sent by the name of the group, to be sent again. */
  readonly #sent: {
    readonly at: number;
    readonly index: number;
    readonly message: NetworkMessage;
  }[] = [];
  #sendCount = 0;
  #isCut = false;
  /** The index of the first ask that still arrives. */
  #asksFrom = 0;

  constructor(clock: Clock, byName: (isStale: boolean) => Instance) {
    this.#clock = clock;
    this.#byName = byName;
  }

  /** Decides on a message to come of a kind. */
  foretell(of: MessageKind, fate: Partial<Fate>): void {
    const fates = this.#fates.get(of) ?? [];
    fates.push({ ...GOOD, ...fate });
    this.#fates.set(of, fates);
  }

  /** Loses everything from now on, what is on its way included. */
  cut(): void {
    this.#isCut = true;
  }

  send(message: NetworkMessage): void {
    const fate = this.#fates.get(message.of)?.shift() ?? GOOD;
    const index = this.#sendCount++;
    if (message.to === null) this.#sent.push({ at: this.#clock.now, index, message });
    if (fate.lost === 'request' || this.#isOff(message.call)) return;
    this.#carry(message, fate, fate.requestMs, index);
    const { requestMs, againMs } = fate;
    // A second delivery would have the first one answered at once, and not when a renewal is due again.
    const isTwice = againMs !== null && message.of !== 'renew';
    if (isTwice) this.#carry(message, fate, requestMs + againMs, index);
  }

  /** Loses all asks that are on their way, or would be delivered once more. */
  loseAsks(): void {
    // By their order, because some may be sent at this very instant.
    this.#asksFrom = this.#sendCount;
  }

  /** Delivers once more what was sent within the last `withinMs`. */
  echo(pick: number, withinMs: number, isStale: boolean): void {
    const recent = this.#sent.filter(({ at }) => at >= this.#clock.now - withinMs);
    const echoed = recent[recent.length - 1 - (pick % recent.length)];
    if (echoed !== undefined) this.#carry(echoed.message, { ...GOOD, isStale }, 0, echoed.index);
  }

  #carry(message: NetworkMessage, fate: Fate, ms: number, index: number): void {
    message.onCarry?.();
    this.#clock.after(ms, () => {
      if (this.#isCut) return;
      if (message.to?.isAsleep === true) return;
      const instance = message.to ?? this.#byName(fate.isStale);
      instance.awaken();
      const reply: Reply = (answer) => this.#answer(message, fate, answer, instance);
      const isLost = message.of === 'ask' && index < this.#asksFrom;
      if (instance.isAlive && !isLost) message.deliver(instance, reply);
      else reply({ kind: 'broken' });
    });
  }

  #answer(message: NetworkMessage, fate: Fate, answer: InstanceAnswer, from: Instance): void {
    this.#clock.after(fate.answerMs, () => {
      if (this.#isCut) return;
      const isLost = fate.lost === 'answer' || this.#isOff(message.call);
      if (isLost) return message.onLost?.(answer, from);
      // A lease whose connection broke before it came is dropped.
      const isDropped = answer.kind === 'lease' && !from.isAlive;
      message.hear(isDropped ? { kind: 'broken' } : answer, from);
    });
  }

  #isOff(call: NetworkParty): boolean {
    return this.#clock.now < call.cutUntil;
  }
}
