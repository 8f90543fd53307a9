/** A parameter that some server may read in a query. */
interface ReadParameter {
  readonly name: string;
  readonly value: string;
  /** The name of its parameter if the query is split only at `&`, as browsers and most servers do. */
  readonly within: string;
}

/**
 * Lists the parameters that servers may read in a query. Some also split it at `;` (Rack, and older versions of Python
 * and Go, and PHP with some settings), so `?a=1;model=x` names a model there. Such a parameter must not bypass a limit.
 * The query is never rewritten for it.
 */
export function parametersIn(query: URLSearchParams): readonly ReadParameter[] {
  return [...query].flatMap(([name, value]) => {
    const whole = { name, value, within: name };
    const text = `${name}=${value}`;
    return text.includes(';') ? [whole, ...text.split(';').map((part) => read(part, name))] : whole;
  });
}

function read(part: string, within: string): ReadParameter {
  const equals = part.indexOf('=');
  const name = equals < 0 ? part : part.slice(0, equals);
  return { name: name.trim(), value: equals < 0 ? '' : part.slice(equals + 1), within };
}
