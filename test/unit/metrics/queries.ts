/** Parts of a PromQL expression, as far as a check of names and labels needs. */

interface Selector {
  readonly metric: string;
  /** Labels that are matched, with the values that are listed; null: a variable or a pattern. */
  readonly matchers: readonly {
    readonly label: string;
    readonly values: readonly string[] | null;
  }[];
  /** Labels that the nearest aggregation around it keeps. */
  readonly by: readonly string[];
}

/** Every selector of an expression. */
export function selectorsOf(expression: string): Selector[] {
  const found = [...expression.matchAll(/\b(headgate_[a-z_]+)(?:\{([^}]*)\})?/g)];
  return found.map((match) => {
    const before = expression.slice(0, match.index);
    const by = [...before.matchAll(/\bby \(([^)]*)\)/g)].at(-1)?.[1] ?? '';
    return {
      metric: match[1] ?? '',
      matchers: matchersOf(match[2] ?? ''),
      by: by.split(',').flatMap((label) => (label.trim() === '' ? [] : [label.trim()])),
    };
  });
}

function matchersOf(text: string): Selector['matchers'] {
  const matchers = [...text.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"/g)];
  const rest = text.replaceAll(/([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"/g, '').replaceAll(/[,\s]/g, '');
  if (rest !== '') throw new Error(`not understood: {${text}}`);
  return matchers.map(([, label = '', value = '']) => ({
    label,
    values: /^[a-z_|]+$/.test(value) ? value.split('|') : null,
  }));
}
