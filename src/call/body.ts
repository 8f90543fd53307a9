import type { ErrorReply } from '../contract/reasons.ts';
import {
  copiedBody,
  keepBody,
  keptBytes,
  renamedBody,
  type KeptBody,
  type ReadLimits,
} from '../upstream/body/kept-body.ts';
import { packingsOf, unpackWhole } from '../upstream/body/packing.ts';
import type { UploadPace } from '../upstream/transfer/upload-pace.ts';
import { unprove, type OutgoingBody } from '../upstream/body/request-body.ts';
import { bodyBudget } from './isolate.ts';
import type { AbortSource } from '../runtime/plain-abort.ts';

/** Maximum size, compressed and uncompressed, of a body that is sent uncompressed. */
const PACKED_BYTES_MAX = 4 * 1024 * 1024;
const UNPACKED_BYTES_MAX = 16 * 1024 * 1024;

/**
 * The body of one call, in the form that it has by now: unread, read in part, kept, under another model name. Each
 * form is made of the one before. `handle.ts` owns it and ends it once; whoever streams it on meanwhile says until
 * when it is needed. Nobody else gives it up.
 */
export class CallBody {
  /** Null: nobody has looked at it yet, so that nothing is held of it. */
  #asCalled: OutgoingBody | KeptBody | null = null;
  /** The form that goes out in its place, under the model name of another upstream. */
  #renamed: OutgoingBody | KeptBody | null = null;
  /** The copy that goes out in place of what is kept. */
  #copy: KeptBody | null = null;
  #isUnpacked = false;
  #uses = 1;

  /** Whether something of the body was taken from the request. */
  get isTaken(): boolean {
    return this.#asCalled !== null;
  }

  /** Bytes of the whole body; null: known only at its end. */
  get contentLength(): number | null {
    return this.#now.contentLength;
  }

  /** Says whether it is in memory as a whole, and can go out more than once. */
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

  /** Whether the caller has not sent all of it yet. */
  get isComing(): boolean {
    return this.#now.isComing;
  }

  /** Whether what is held of it is small; of one that nothing is held of too. */
  get isSmall(): boolean {
    return bodyBudget.isSmall(this.#now.reservation?.bytes ?? 0);
  }

  /** All of it, where it is kept; null: it is not, or there is none. */
  get bytes(): Uint8Array | null {
    const form = this.#now;
    return 'bytes' in form ? form.bytes : null;
  }

  /** Resolves when it was handed over or given up. */
  get sent(): Promise<void> {
    return this.#now.sent;
  }

  /** Whether the rest of it is looked through on its way out. */
  get isWatched(): boolean {
    return this.#now.watch !== null;
  }

  /** Why the rest of it may not go out; null: nothing is known against it. */
  get fault(): ErrorReply | null {
    return this.#now.watch?.fault ?? null;
  }

  onFault(listener: () => void): void {
    this.#now.watch?.onFault(listener);
  }

  /** Takes over a form that was made of what was there before. */
  hold(form: OutgoingBody): void {
    if (this.#renamed === null) this.#asCalled = form;
    else this.#renamed = form;
  }

  /**
   * Opens it for the upstream: once, and as often as it is wanted where it is kept. `changed` makes of a kept one what
   * goes out in its place; null: it is forwarded unchanged. `pace` measures how fast the caller sends the rest.
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

  /** Lets its call wait for a slot of a pool with what is held of it. False: there is no room for that. */
  rest(pool: string): boolean {
    return this.#now.reservation?.rest(pool) ?? true;
  }

  /** Its call waits no longer. */
  move(): void {
    this.#now.reservation?.move();
  }

  /** Wants it again, for it is to go out once more. */
  unspare(): void {
    const form = this.#now;
    if ('bytes' in form) form.unspare();
    this.#dropCopy();
  }

  /** The request with what is there of its body, to be read once more. */
  readAgain({ url, method, signal, headers: asSent }: Request): Request {
    const form = this.#now;
    const headers = new Headers(asSent);
    if (form.contentLength === null) headers.delete('content-length');
    else headers.set('content-length', String(form.contentLength));
    if (this.#isUnpacked) headers.delete('content-encoding');
    // It is looked at anew.
    form.watch?.stop();
    const whole = 'bytes' in form ? form.bytes : (form.whole()?.bytes ?? null);
    const again = new Request(url, { method, headers, body: whole ?? form.open(), signal });
    // Of bytes the request has a copy, for which its reader asks the budget by itself.
    if (whole !== null && this.#renamed === null) form.discard();
    return again;
  }

  /** Takes the first characters off its model. False: not possible. */
  dropModelPrefix(characters: number): boolean {
    const stripped = this.#now.withoutModelPrefix(characters);
    if (stripped !== null) this.hold(stripped);
    return stripped !== null;
  }

  /**
   * Decompresses the body for all further attempts, because a name inside compressed bytes cannot be changed. `changed`
   * makes the bytes that are kept. `no`: it made none, or the body is not compressed or too large to be held.
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

  /** Lets its model no longer count. */
  unprove(): void {
    unprove(this.#now);
  }

  /** Reads it whole and keeps it, as far as `keepBody` does so. */
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

  /** Puts it under another model name until `restore`. False: it is not kept, or names no model. */
  rename(model: string): boolean {
    const form = this.#now;
    this.#renamed = 'bytes' in form ? renamedBody(form, model) : null;
    return this.#renamed !== null;
  }

  /** Puts it under its own model name again. */
  restore(): void {
    this.#renamed = null;
  }

  /**
   * The upstream has answered: it will not be sent again, and what is in memory of it need not be held for as long as
   * the answer takes.
   */
  answered(): void {
    this.#copy?.answered();
    this.#renamed?.answered();
    this.#asCalled?.answered();
  }

  /** Keeps it until `work` is over, beyond its owner's end. */
  neededUntil(work: Promise<unknown>): void {
    this.#uses += 1;
    const over = (): void => this.end();
    work.then(over, over);
  }

  /** Ends one use. After the last one nothing of it is held. */
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
    if (form === null) throw new Error('the body was not looked at yet');
    return form;
  }
}

function unchanged(): null {
  return null;
}
