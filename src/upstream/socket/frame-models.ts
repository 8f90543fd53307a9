import { foldedName, isModelList, MODEL_BYTES_MAX } from '../body/model-scan.ts';
import { KeyNames } from '../json/json-key.ts';
import { textOf } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-visitor.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { bytesOf } from './frame.ts';

export interface FrameModels {
  readonly kind: 'read';
  /** Models that generate: `model` at the top level, or in `setup`, `session` or `response`. */
  readonly main: readonly string[];
  /** Auxiliary models, such as one that transcribes the input. */
  readonly beside: readonly string[];
  readonly isSetup: boolean;
}

/** A message that parsers may read differently. `why` continues "The message could not be read: …". */
interface Unreadable {
  readonly kind: 'unreadable';
  readonly why: string;
}

/**
 * Signs of a message that names a model or a setup for some parser: the words themselves, escapes that may hide one of
 * their letters, or the zeros of UTF-16. Every message of a session is tested, so the pattern must be cheap.
 */
const MAY_NAME = /model|fallbac[k\u212a]|u[sſ]er_?config|[sſ]etup|\\[^"\\/bfnrt]|\0/i;

/**
 * Servers may read a message that is not an object by their own rules, such as an array, a comment or another encoding.
 */
const BEGINS_OBJECT = /^\ufeff?[ \t\r\n]*\{/;

export function beginsObject(text: string): boolean {
  return BEGINS_OBJECT.test(text);
}

/** Whether some parser may find a model in a message. */
export function mayNameModel(text: string): boolean {
  return MAY_NAME.test(text);
}

/** Reads the models that a message names, as thoroughly as the body of a call. */
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
/** A list of conversation items, or an object with the session's audio settings. */
const INPUT = 'input';
const LETTER_N = 0x6e;

/** Values with the client's own data, whose keys have no meaning here: schemas, items, variables. */
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

class ModelsVisitor implements JsonVisitor {
  readonly #main: string[] = [];
  readonly #beside: string[] = [];
  /** For each level, whether the open object has named its model. */
  readonly #hasNamed: boolean[] = [];
  #setups = 0;
  #why: string | null = null;
  #isWhole = false;

  key(value: WalkedValue): void {
    const { keyBytes, depth } = value;
    if (keyBytes === null) return;
    const key = textOf(keyBytes);
    if (key === null) return this.#fail('a key is not a JSON string', value);
    const folded = foldedName(key);
    if (folded === MODEL) {
      if (key !== MODEL) return this.#fail('the name of a model field is not in lower case', value);
      if (this.#hasNamed[depth] === true) return this.#fail('it names its model twice', value);
      this.#hasNamed[depth] = true;
    } else if (isModelList(folded)) {
      this.#fail(`it lists several models in \`${folded}\``, value);
    } else if (depth === 1 && folded.includes(SETUP)) {
      if (key !== SETUP) return this.#fail('its setup is spelled differently', value);
      this.#setups += 1;
      if (this.#setups > 1) this.#fail('it has two setups', value);
    }
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth } = value;
    const key = value.key(depth);
    if (key === MODEL) {
      if (kind === 'string') return 'keep';
      if (value.firstByte !== LETTER_N) this.#fail('a model field is not a string', value);
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
      return this.#fail(`a model is not a JSON string of at most ${MODEL_BYTES_MAX} bytes`, value);
    }
    if (model.includes(',')) return this.#fail('a model field names several models', value);
    (depth <= 2 ? this.#main : this.#beside).push(model);
  }

  record(isWhole: boolean): void {
    if (isWhole) this.#isWhole = true;
    else this.#why ??= 'the JSON is malformed';
  }

  stray(): void {
    this.#why ??= this.#isWhole ? 'something follows the JSON' : 'it is not a JSON object';
  }

  read(): FrameModels | Unreadable {
    if (this.#why !== null) return unreadable(this.#why);
    if (!this.#isWhole) return unreadable('it is not a complete JSON object');
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
