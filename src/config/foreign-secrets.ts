import { freeName } from './foreign-groups.ts';
import { isKeyLike } from './key-like.ts';

/** Prefixes of variables in place of a key, as in `${NAME}`, `{{NAME}}` and `env.NAME`. */
const REFERENCE = /^(?:\$\{?|\{\{\s*)?(?:(?:process\.)?env[.:](?:\/\/)?|os\.environ\/)?/;

/** A placeholder that is itself the name of a variable, as in examples. */
const PLACEHOLDER = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET)$/;

/**
 * Names of secrets for the keys of a foreign document, and notes on how to set them. Keys themselves are never imported
 * or repeated. The same key gets the same name.
 */
export class ForeignSecrets {
  readonly #names = new Map<string, string>();
  readonly #notes = new Map<string, string>();

  /** One sentence for each secret that the operator has to set. */
  get notes(): string[] {
    return [...this.#notes.values()];
  }

  /** Returns the secret of an environment variable. A key in place of the variable's name is not repeated. */
  ofVariable(variable: string): string {
    if (isKeyLike(variable)) {
      return this.#named(
        `key ${variable}`,
        secretName('KEY'),
        'a provider, which the document has in place of the name of a variable',
      );
    }
    const name = secretName(variable);
    this.#note(
      name,
      `Set the secret ${name} to the value of the environment variable ${variable}.`,
    );
    return name;
  }

  /**
   * Returns the secret of a key in the document.
   *
   * @param owner owner of the key, as in `openai`. The name is derived from it, unless the key is the name of a
   *   variable.
   */
  ofKey(key: string, owner: string, at: string): string {
    const variable = variableIn(key);
    if (variable !== null) return this.ofVariable(variable);
    return this.#named(`key ${key}`, secretName(`${owner}_API_KEY`), at);
  }

  /** Returns the secret of something else that another system stores, such as a credential. */
  ofOther(what: string, owner: string, at: string): string {
    return this.#named(`other ${what}`, secretName(owner), at);
  }

  /**
   * Returns the secret of a key of an entry in a list.
   *
   * @param which index of the key among those of the entry
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
    this.#note(name, `Set the secret ${name} to the key of ${at}. Keys are not imported.`);
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

/** Returns the variable in place of a key. null if the text is a key itself. */
function variableIn(key: string): string | null {
  const name = key.replace(REFERENCE, '').replace(/\s*\}{1,2}$/, '');
  const isReference = name !== key && /^[A-Za-z_]\w*$/.test(name);
  return isReference || PLACEHOLDER.test(key) ? name : null;
}

/** Returns the name of a secret, which begins with `UPSTREAM_`. */
function secretName(text: string, most = 47): string {
  const word = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .replace(/^UPSTREAM_/, '');
  return `UPSTREAM_${word.slice(0, most) || 'KEY'}`;
}
