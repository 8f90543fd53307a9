import { isKeyLike } from '../key-like.ts';
import { fieldsOf } from './fields.ts';

const PREFIX = 'os.environ/';

/** Values of variables that a document may name in place of any value. */
export type Environment = (name: string) => string | undefined;

/** Reads variables as LiteLLM does: those that the document sets come first. */
export function environmentOf(
  document: unknown,
  outside: Readonly<Record<string, string | undefined>> = {},
): Environment {
  const own = fieldsOf(fieldsOf(document)['environment_variables']);
  return (name) => {
    const set = own[name];
    if (typeof set === 'string' || typeof set === 'number') return String(set);
    return Object.hasOwn(outside, name) ? outside[name] : undefined;
  };
}

/**
 * Takes the name of the variable that a value stands for. Null: it is a value itself. A key that was written behind the
 * prefix by mistake is no name, because names are repeated.
 */
export function variableOf(value: unknown): string | null {
  if (typeof value !== 'string' || !value.startsWith(PREFIX)) return null;
  const name = value.slice(PREFIX.length);
  return isKeyLike(name) ? null : name;
}

/** A value with its variable resolved, or the name of the variable that has none. */
type Resolved = { readonly value: unknown } | { readonly missing: string };

/** Resolves a value that may be the name of a variable. Texts that are a truth value are read as that. */
export function resolveValue(value: unknown, environment: Environment): Resolved {
  const name = variableOf(value);
  if (name === null) return { value };
  const set = environment(name);
  if (set === undefined) return { missing: name };
  return { value: /^(?:true|false)$/i.test(set) ? set.toLowerCase() === 'true' : set };
}

/** Says what to do about a variable without a value. */
export function missingVariable(name: string): string {
  return `is the environment variable ${name.slice(0, 64)}, which is not set here. Set it where you run headgate import, or write its value`;
}
