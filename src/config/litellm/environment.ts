import { isKeyLike } from '../key-like.ts';
import { fieldsOf } from './fields.ts';

const PREFIX = 'os.environ/';

/** Returns the value of a variable that a document may use in place of any value. */
export type Environment = (name: string) => string | undefined;

/** Reads variables as LiteLLM does: those in the document take precedence. */
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
 * Returns the variable in place of a value. null if it is a plain value. A key that was written after the prefix by
 * mistake is not a variable, because names of variables are repeated.
 */
export function variableOf(value: unknown): string | null {
  if (typeof value !== 'string' || !value.startsWith(PREFIX)) return null;
  const name = value.slice(PREFIX.length);
  return isKeyLike(name) ? null : name;
}

/** A resolved value, or the name of a variable that is not set. */
type Resolved = { readonly value: unknown } | { readonly missing: string };

/** Resolves a value that may be the name of a variable. The texts `true` and `false` become booleans. */
export function resolveValue(value: unknown, environment: Environment): Resolved {
  const name = variableOf(value);
  if (name === null) return { value };
  const set = environment(name);
  if (set === undefined) return { missing: name };
  return { value: /^(?:true|false)$/i.test(set) ? set.toLowerCase() === 'true' : set };
}

export function missingVariable(name: string): string {
  return `uses the environment variable ${name.slice(0, 64)}, which is not set. Set it where you run headgate import, or write its value`;
}
