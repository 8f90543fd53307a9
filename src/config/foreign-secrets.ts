// Step 2, the keys of other systems. check-config.ts lists all steps.

import { freeName } from './foreign-groups.ts';
import { isKeyLike } from './key-like.ts';

/** Beginnings of variables that documents put in place of a key, as in `${NAME}`, `{{NAME}}` and `env.NAME`. */
const REFERENCE = /^(?:\$\{?|\{\{\s*)?(?:(?:process\.)?env[.:](?:\/\/)?|os\.environ\/)?/;

/** A placeholder that is the name of a variable itself, as examples have it. */
const PLACEHOLDER = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET)$/;

/**
 * Names of secrets for the keys of a foreign document, and what is to be done about them. A key itself is never taken over
 * and never repeated: the same key gets the same name.
 */
export class ForeignSecrets {
  readonly #names = new Map<string, string>();
  readonly #notes = new Map<string, string>();

  /** One sentence for each secret that the operator has to set. */
  get notes(): string[] {
    return [...this.#notes.values()];
  }

  /** Names the secret of an environment variable. A key that stands in place of its name is not repeated. */
  ofVariable(variable: string): string {
    if (isKeyLike(variable)) {
      return this.#named(
        `key ${variable}`,
        secretName('KEY'),
        'a provider, which stands in place of the name of a variable',
      );
    }
    const name = secretName(variable);
    this.#note(name, `Set the secret ${name} to what the environment variable ${variable} held.`);
    return name;
  }

  /**
   * Names the secret of a key that stands in the document.
   *
   * @param owner What the key is of, as in `openai`: a name is made of it, unless the key is the name of a variable.
   */
  ofKey(key: string, owner: string, at: string): string {
    const variable = variableIn(key);
    if (variable !== null) return this.ofVariable(variable);
    return this.#named(`key ${key}`, secretName(`${owner}_API_KEY`), at);
  }

  /** Names the secret of something else that another system keeps, as of a stored credential. */
  ofOther(what: string, owner: string, at: string): string {
    return this.#named(`other ${what}`, secretName(owner), at);
  }

  /**
   * Names the secret of a key of an entry in a list.
   *
   * @param which Place of the key among those of the entry, from 0.
   */
  ofEntry(what: string, title: string, index: number, at: string, which = 0): string {
    const end = `_${index + 1}_KEY${which === 0 ? '' : `_${which + 1}`}`;
    return this.#named(`other ${what}`, `${secretName(title, 36)}${end}`, at);
  }

  #named(identity: string, wanted: string, at: string): string {
    const known = this.#names.get(identity);
    if (known !== undefined) return known;
    const name = freeName(wanted, (each) => this.#notes.has(each), 59, '_');
    this.#names.set(identity, name);
    this.#note(name, `Set the secret ${name} to the key of ${at}; keys are not imported.`);
    return name;
  }

  #note(name: string, text: string): void {
    if (!this.#notes.has(name)) this.#notes.set(name, text);
  }
}

/** Returns the secret that a note asks for. null if it asks for none. */
export function secretOfNote(note: string): string | null {
  return /^Set the secret (UPSTREAM_\w+) to /.exec(note)?.[1] ?? null;
}

/** Finds the variable that stands in place of a key. Null: it is a key itself. */
function variableIn(key: string): string | null {
  const name = key.replace(REFERENCE, '').replace(/\s*\}{1,2}$/, '');
  const isReference = name !== key && /^[A-Za-z_]\w*$/.test(name);
  return isReference || PLACEHOLDER.test(key) ? name : null;
}

/** Makes the name of a secret, which begins with `UPSTREAM_`. */
function secretName(text: string, most = 47): string {
  const word = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .replace(/^UPSTREAM_/, '');
  return `UPSTREAM_${word.slice(0, most) || 'KEY'}`;
}
