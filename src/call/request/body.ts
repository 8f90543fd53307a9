import { env } from 'cloudflare:workers';
import type { Env } from '../../env.ts';
import { BODY_LIMITS, BodyBudget, bodyLimits } from '../../upstream/body/body-budget.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import {
  copiedBody,
  keepBody,
  keptBytes,
  renamedBody,
  type KeptBody,
  type ReadLimits,
} from '../../upstream/body/kept-body.ts';
import { packingsOf, unpackWhole } from '../../upstream/body/packing.ts';
import type { UploadPace } from '../../upstream/transfer/watched-pipe.ts';
import { unprove, type OutgoingBody } from '../../upstream/body/request-body.ts';
import type { AbortSource } from '../../runtime/async.ts';

/** Maximum size, compressed and uncompressed, of a body that is sent uncompressed. */
const PACKED_BYTES_MAX = 4 * 1024 * 1024;
const UNPACKED_BYTES_MAX = 16 * 1024 * 1024;

const { BODY_MEMORY_MIB: bodyMib } = env as Pick<Env, 'BODY_MEMORY_MIB'>;

/** The memory for bodies. All calls of an isolate share it. */
export const bodyBudget = new BodyBudget(
  bodyMib === undefined ? BODY_LIMITS : bodyLimits(Number(bodyMib)),
);

/**
 * The body of one call in its current form: unread, partly read, kept in memory, or renamed to another model. Each form
 * is made from the previous one. `handle.ts` owns it and ends it once. Code that streams it beyond that end extends its
 * life with `neededUntil`.
 */
export class CallBody {
  /** null until the body is first read. Nothing is held of it before. */
  #asCalled: OutgoingBody | KeptBody | null = null;
  /** The form with the model name of another upstream, which is sent instead. */
  #renamed: OutgoingBody | KeptBody | null = null;
  /** The changed copy that is sent instead of the kept bytes. */
  #copy: KeptBody | null = null;
  #isUnpacked = false;
  #uses = 1;

  get isTaken(): boolean {
    return this.#asCalled !== null;
  }

  /** Bytes of the whole body. null if the length is known only at the end. */
  get contentLength(): number | null {
    return this.#now.contentLength;
  }

  /** Whether the whole body is in memory, so that it can be sent more than once. */
  get isKept(): boolean {
    const form = this.#now;
    return 'bytes' in form && !form.isGone;
  }

  /** Whether the body arrived compressed and is sent uncompressed. */
  get isUnpacked(): boolean {
    return this.#isUnpacked;
  }

  /** The current `content-encoding`, given the headers of the request. */
  encodingIn(headers: Headers): string | null {
    return this.#isUnpacked ? null : headers.get('content-encoding');
  }

  get isComing(): boolean {
    return this.#now.isComing;
  }

  /** Whether the bytes held of it are few. True if none are held. */
  get isSmall(): boolean {
    return bodyBudget.isSmall(this.#now.reservation?.bytes ?? 0);
  }

  /** The whole body if it is kept. null if it is not, or there is none. */
  get bytes(): Uint8Array | null {
    const form = this.#now;
    return 'bytes' in form ? form.bytes : null;
  }

  /** Resolves when the body was handed over or given up. */
  get sent(): Promise<void> {
    return this.#now.sent;
  }

  get isWatched(): boolean {
    return this.#now.watch !== null;
  }

  /** Why the remaining body may not be sent. null if no fault was found. */
  get fault(): ErrorReply | null {
    return this.#now.watch?.fault ?? null;
  }

  onFault(listener: () => void): void {
    this.#now.watch?.onFault(listener);
  }

  /** Replaces the current form by one that was made from it. */
  hold(form: OutgoingBody): void {
    if (this.#renamed === null) this.#asCalled = form;
    else this.#renamed = form;
  }

  /**
   * Opens the body for the upstream. A kept body can be opened any number of times, any other once. `changed` returns
   * the bytes to send instead of the kept ones, or null to forward those. `pace` measures how fast the caller sends the
   * remaining body.
   */
  open(
    pace: UploadPace | null = null,
    changed: (bytes: Uint8Array) => Uint8Array | null = unchanged,
  ): BodyInit | null {
    const kept = this.#asKept;
    const bytes = kept === null || kept.isGone ? null : this.bytes;
    if (kept === null || bytes === null) return this.#now.open(pace);
    const out = changed(bytes) ?? bytes;
    this.#dropCopy();
    if (out === kept.bytes) return kept.open();
    this.#copy = copiedBody(out, bodyBudget);
    kept.spare();
    return this.#copy.open();
  }

  /** Keeps the held bytes while the call queues for a slot of a pool. Returns false if there is no room for that. */
  rest(pool: string): boolean {
    return this.#now.reservation?.rest(pool) ?? true;
  }

  move(): void {
    this.#now.reservation?.move();
  }

  /** Requires the body in memory again, because it has to be sent again. */
  unspare(): void {
    const form = this.#now;
    if ('bytes' in form) form.unspare();
    this.#dropCopy();
  }

  readAgain({ url, method, signal, headers: asSent }: Request): Request {
    const form = this.#now;
    const headers = new Headers(asSent);
    if (form.contentLength === null) headers.delete('content-length');
    else headers.set('content-length', String(form.contentLength));
    if (this.#isUnpacked) headers.delete('content-encoding');
    // The new read checks it again.
    form.watch?.stop();
    const whole = 'bytes' in form ? form.bytes : (form.whole()?.bytes ?? null);
    const again = new Request(url, { method, headers, body: whole ?? form.open(), signal });
    // The request has a copy of the bytes, and its reader reserves memory for that.
    if (whole !== null && this.#renamed === null) form.discard();
    return again;
  }

  /** Removes the first characters of its model. Returns false if that is not possible. */
  dropModelPrefix(characters: number): boolean {
    const stripped = this.#now.withoutModelPrefix(characters);
    if (stripped !== null) this.hold(stripped);
    return stripped !== null;
  }

  /**
   * Decompresses the body for all further attempts, because a name inside compressed bytes cannot be changed. `changed`
   * makes the bytes to keep. Returns `no` if it made none, or if the body is not compressed or is too large to hold.
   */
  async unpack(
    { headers, signal }: Request,
    changed: (bytes: Uint8Array) => Uint8Array | null,
  ): Promise<'done' | 'no' | 'aborted'> {
    const packings = packingsOf(this.encodingIn(headers));
    if (packings === null || packings.length === 0) return 'no';
    const kept = await this.keep(PACKED_BYTES_MAX, signal);
    const { bytes } = this;
    if (kept === 'aborted') return kept;
    if (kept !== 'kept' || bytes === null) return 'no';
    const whole = await unpackWhole(bytes, packings, bodyBudget, UNPACKED_BYTES_MAX);
    if (whole === null) return 'no';
    const plain = changed(whole.bytes);
    if (plain === null) {
      whole.reservation.release();
      return 'no';
    }
    this.#now.discard();
    this.hold(keptBytes(plain, whole.reservation));
    this.#isUnpacked = true;
    return 'done';
  }

  /** Stops the check of the model in the remaining body. */
  unprove(): void {
    unprove(this.#now);
  }

  /** Reads the whole body and keeps it, within the limits of `keepBody`. */
  async keep(
    bytesMax: number,
    signal: AbortSource,
    limits: ReadLimits = {},
  ): Promise<'kept' | 'not kept' | 'aborted'> {
    const kept = await keepBody(this.#now, bytesMax, bodyBudget, signal, limits);
    if (kept === 'aborted') return kept;
    if (kept !== null) this.hold(kept);
    return kept === null ? 'not kept' : 'kept';
  }

  /** Replaces its model name until `restore`. Returns false if the body is not kept or names no model. */
  rename(model: string): boolean {
    const form = this.#now;
    this.#renamed = 'bytes' in form ? renamedBody(form, model) : null;
    return this.#renamed !== null;
  }

  /** Restores its own model name. */
  restore(): void {
    this.#renamed = null;
  }

  /**
   * Reports that the upstream has answered. The body is not sent again, so its memory is not held for the duration of
   * the answer.
   */
  answered(): void {
    this.#copy?.answered();
    this.#renamed?.answered();
    this.#asCalled?.answered();
  }

  /** Keeps the body until `work` ends, even after its owner has ended it. */
  neededUntil(work: Promise<unknown>): void {
    this.#uses += 1;
    const end = (): void => this.end();
    work.then(end, end);
  }

  /** Ends one use. Nothing of the body is held after the last. */
  end(): void {
    this.#uses -= 1;
    if (this.#uses === 0) this.#discard();
  }

  #dropCopy(): void {
    this.#copy?.discard();
    this.#copy = null;
  }

  #discard(): void {
    this.#dropCopy();
    this.#renamed?.discard();
    this.#asCalled?.discard();
  }

  get #asKept(): KeptBody | null {
    const form = this.#asCalled;
    return form !== null && 'bytes' in form ? form : null;
  }

  get #now(): OutgoingBody | KeptBody {
    const form = this.#renamed ?? this.#asCalled;
    if (form === null) throw new Error('the body has not been read yet');
    return form;
  }
}

function unchanged(): null {
  return null;
}
