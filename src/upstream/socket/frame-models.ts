import { foldedName, MODEL_BYTES_MAX } from '../body/model-scan.ts';
import { KeyNames } from '../json/json-key.ts';
import { textOf } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-visitor.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { bytesOf } from './frame.ts';

/** The models that a message of a client names. */
export interface FrameModels {
  readonly kind: 'read';
  /** Those that answer: `model` itself, or that of `setup`, `session` or `response`. */
  readonly main: readonly string[];
  /** Those that help, as the one that transcribes the input. */
  readonly beside: readonly string[];
  /** Whether the message sets a session up. */
  readonly isSetup: boolean;
}

/** A message that some parser may read in another way. `why` continues "The message could not be read: …". */
interface Unreadable {
  readonly kind: 'unreadable';
  readonly why: string;
}

/**
 * Signs of a message that names a model or a setup to some parser: the words themselves, escapes that may hide a letter
 * of them, or the zeros of UTF-16. It is tested on each message of a session, so it must be cheap.
 */
const MAY_NAME = /model|fallbac[k\u212a][sſ]|[sſ]etup|\\[^"\\/bfnrt]|\0/i;

/** A message that is no object is one that a server may read by rules of its own: an array, a comment, another encoding. */
const BEGINS_OBJECT = /^\ufeff?[ \t\r\n]*\{/;

/** Tells whether a message is an object, as far as its beginning shows. */
export function beginsObject(text: string): boolean {
  return BEGINS_OBJECT.test(text);
}

/** Tells whether a message may name a model to some parser. */
export function mayNameModel(text: string): boolean {
  return MAY_NAME.test(text);
}

/** Reads which models a message names, as thoroughly as the body of a call is read for its own. */
export function readFrameModels(text: string): FrameModels | Unreadable {
  const visitor = new ModelsVisitor();
  const walk = new JsonWalk(visitor, {
    form: 'strict_object',
    keys: KEYS,
    keepBytesMax: MODEL_BYTES_MAX + 1,
    keyBytesMax: MODEL_BYTES_MAX,
  });
  walk.push(bytesOf(text));
  return visitor.read();
}

const MODEL = 'model';
const SETUP = 'setup';
/** Items of a conversation where it is a list; else what the session says of its audio. */
const INPUT = 'input';
const LETTER_N = 0x6e;

/** Values that hold data of the client's own, whose keys name nothing: schemas, items, variables. */
const OWN_DATA = [
  'tools',
  'tool_choice',
  'toolConfig',
  'tool_config',
  'item',
  'metadata',
  'variables',
  'schema',
  'json_schema',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'clientContent',
  'client_content',
  'toolResponse',
  'tool_response',
];
const ownData = new Set(OWN_DATA);
const KEYS = new KeyNames([MODEL, INPUT, ...OWN_DATA]);

/** Names under which some servers take models in place of the one that is named. */
const LISTS: ReadonlySet<string> = new Set(['models', 'fallbacks']);

class ModelsVisitor implements JsonVisitor {
  readonly #main: string[] = [];
  readonly #beside: string[] = [];
  /** By level: whether the object that is open there has named its model. */
  readonly #hasNamed: boolean[] = [];
  #setups = 0;
  #why: string | null = null;
  #isWhole = false;

  key(value: WalkedValue): void {
    const { keyBytes, depth } = value;
    if (keyBytes === null) return;
    const key = textOf(keyBytes);
    if (key === null) return this.#fail('a key is no JSON text', value);
    const folded = foldedName(key);
    if (folded === MODEL) {
      if (key !== MODEL) return this.#fail('the name of a model field is not in lower case', value);
      if (this.#hasNamed[depth] === true) return this.#fail('it names its model twice', value);
      this.#hasNamed[depth] = true;
    } else if (LISTS.has(folded)) {
      this.#fail(`it names several models, under ${folded}`, value);
    } else if (depth === 1 && folded.includes(SETUP)) {
      if (key !== SETUP) return this.#fail('its setup has another name', value);
      this.#setups += 1;
      if (this.#setups > 1) this.#fail('it has two setups', value);
    }
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth } = value;
    const key = value.key(depth);
    if (key === MODEL) {
      if (kind === 'string') return 'keep';
      if (value.firstByte !== LETTER_N) this.#fail('the value of a model field is no text', value);
      return 'skip';
    }
    if (kind !== 'object' && kind !== 'array') return 'skip';
    if (ownData.has(key) || (key === INPUT && kind === 'array')) return 'skip';
    if (kind === 'object') this.#hasNamed[depth + 1] = false;
    return 'walk';
  }

  end(value: WalkedValue): void {
    const { kept, depth } = value;
    const model = kept.length > MODEL_BYTES_MAX ? null : textOf(kept);
    if (model === null) {
      return this.#fail(`a model is no JSON text of at most ${MODEL_BYTES_MAX} bytes`, value);
    }
    if (model.includes(',')) return this.#fail('a model field names several', value);
    (depth <= 2 ? this.#main : this.#beside).push(model);
  }

  record(isWhole: boolean): void {
    if (isWhole) this.#isWhole = true;
    else this.#why ??= 'the JSON is malformed';
  }

  stray(): void {
    this.#why ??= this.#isWhole ? 'something follows the JSON' : 'it is no JSON object';
  }

  read(): FrameModels | Unreadable {
    if (this.#why !== null) return unreadable(this.#why);
    if (!this.#isWhole) return unreadable('it is no whole JSON object');
    const isSetup = this.#setups > 0;
    return { kind: 'read', main: this.#main, beside: this.#beside, isSetup };
  }

  #fail(why: string, value: WalkedValue): void {
    this.#why ??= why;
    value.leave();
  }
}

function unreadable(why: string): Unreadable {
  return { kind: 'unreadable', why };
}
