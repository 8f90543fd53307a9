import { quoteName, type FieldError } from '../../../../src/config/field-error.ts';

/** A model and its fallbacks, with their path in the document. */
interface Chain {
  readonly at: string;
  readonly model: unknown;
  readonly fallbacks: unknown;
}

/**
 * Returns the fallbacks of each model: those of its own entries first, then those of the agents that begin with it.
 * Unknown names, a second chain that differs, and unreadable parts are omitted.
 */
export function chainsOf(
  own: readonly (readonly [model: string, fallbacks: readonly string[]])[],
  agents: unknown,
  omitted: FieldError[],
): ReadonlyMap<string, readonly string[]> {
  const known = new Set(own.map(([model]) => model));
  const chains = new Map<string, readonly string[]>();
  const all: Chain[] = [
    ...own.map(([model, fallbacks]) => ({
      at: `model_list (${model}).fallbacks`,
      model,
      fallbacks,
    })),
    ...chainsOfAgents(agents, omitted),
  ];
  for (const { at, model, fallbacks } of all) {
    const names = namesOf(fallbacks);
    if (names === null) {
      omitted.push({ path: at, message: 'expected a list of `model_name` values' });
    }
    if (names === null || names.length === 0) continue;
    if (typeof model !== 'string' || !known.has(model)) {
      const message =
        typeof model === 'string'
          ? `${quoteName(model)} is not the \`model_name\` of an entry`
          : 'names no model';
      omitted.push({ path: at, message });
      continue;
    }
    for (const name of names.filter((each) => !known.has(each))) {
      omitted.push({
        path: at,
        message: `${quoteName(name)} is not the \`model_name\` of an entry`,
      });
    }
    const chain = [...new Set(names)].filter((name) => known.has(name) && name !== model);
    const before = chains.get(model);
    if (before === undefined) chains.set(model, chain);
    else if (before.join('\n') !== chain.join('\n')) {
      const message = `\`${model}\` already has other fallbacks, and a group has one order of members`;
      omitted.push({ path: at, message });
    }
  }
  return chains;
}

/** Returns the chains of `agents`. Parts with a wrong type are omitted. */
function chainsOfAgents(agents: unknown, omitted: FieldError[]): Chain[] {
  const { defaults, list } = fieldsAt(agents, 'agents', omitted);
  const usual = fieldsAt(defaults, 'agents.defaults', omitted);
  if (list !== undefined && list !== null && !Array.isArray(list)) {
    omitted.push({ path: 'agents.list', message: 'expected a list of agents' });
  }
  const each = Array.isArray(list) ? (list as unknown[]) : [];
  return [
    {
      at: 'agents.defaults.model_fallbacks',
      model: usual['model_name'] || usual['model'],
      fallbacks: usual['model_fallbacks'],
    },
    {
      at: 'agents.defaults.image_model_fallbacks',
      model: usual['image_model'],
      fallbacks: usual['image_model_fallbacks'],
    },
    ...each.flatMap((agent, index): Chain[] => {
      const at = `agents.list[${index}].model`;
      const { model } = fieldsAt(agent, `agents.list[${index}]`, omitted);
      // A string is a model without fallbacks.
      if (typeof model === 'string') return [];
      const { primary, fallbacks } = fieldsAt(model, at, omitted);
      return [{ at: `${at}.fallbacks`, model: primary, fallbacks }];
    }),
  ];
}

function fieldsAt(
  value: unknown,
  path: string,
  omitted: FieldError[],
): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
  omitted.push({ path, message: 'expected an object' });
  return {};
}

/** Returns a list of names. null if the value is not one. */
function namesOf(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return null;
  return value.every((name) => typeof name === 'string') ? value : null;
}
