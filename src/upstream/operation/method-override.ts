import { parametersIn } from './query-readings.ts';

/**
 * Some servers and frameworks process a request with another method, named by a header (Google, Microsoft, Rack,
 * Symfony, Express) or by a parameter of the query or a form (`_method`). Such a request counts as the strictest of all
 * its readings, because Headgate cannot know which one the upstream chooses.
 */

export const OVERRIDE_HEADERS: readonly string[] = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-method',
  'http-method-override',
  'method-override',
];

/**
 * `_method`, and the names that PHP converts to it: a blank or a dot becomes `_`, brackets create an array, and a zero
 * byte ends the name. Google reads the method of a request from `$httpMethod`, and additional headers from
 * `$httpHeaders`.
 */
const PARAMETER = /^\s*(?:[_. ]method|\$http_?(?:method|headers))(?:[[\0].*)?$/is;

interface MethodOverride {
  readonly name: string;
  readonly value: string;
}

/** Finds the header or parameter that names another method. Returns null if there is none. */
export function methodOverride(headers: Headers, query: URLSearchParams): MethodOverride | null {
  const name = OVERRIDE_HEADERS.find((each) => headers.has(each));
  if (name !== undefined) return { name, value: headers.get(name) ?? '' };
  if (query.size === 0) return null;
  const found = parametersIn(query).find((parameter) => isOverrideParameter(parameter.name));
  if (found === undefined) return null;
  return { name: `?${found.name.slice(0, 40)}`, value: found.value };
}

export function isOverrideParameter(name: string): boolean {
  return PARAMETER.test(name) || OVERRIDE_HEADERS.includes(name.toLowerCase().replaceAll('_', '-'));
}

/**
 * Whether a header is one of those, spelled with an underscore. CGI, WSGI and Rack treat it like a dash, so it is never
 * forwarded. nginx drops such headers as well.
 */
export function isUnderscoredOverride(name: string): boolean {
  return name.includes('_') && OVERRIDE_HEADERS.includes(name.replaceAll('_', '-'));
}

/** The methods that a request with an override may count as: the named ones, and always POST. */
export function overridingMethods({ value }: MethodOverride): readonly string[] {
  const named = value.split(',').map((each) => each.trim().toUpperCase());
  return [...new Set(['POST', ...named])];
}
