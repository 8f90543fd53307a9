// Step 2, the fallbacks of agents. check-config.ts lists all steps.

import * as z from 'zod';
import type { FieldError } from './field-error.ts';

const names = z.array(z.string()).catch([]);

/** The parts of `agents` that say which models take over for others. */
const agentsSchema = z
  .looseObject({
    defaults: z
      .looseObject({
        model_name: z.string().optional().catch(undefined),
        model_fallbacks: names.optional(),
        image_model: z.string().optional().catch(undefined),
        image_model_fallbacks: names.optional(),
      })
      .optional()
      .catch(undefined),
    list: z
      .array(
        z.looseObject({
          model: z
            .looseObject({ primary: z.string().optional(), fallbacks: names.optional() })
            .optional()
            .catch(undefined),
        }),
      )
      .catch([])
      .optional(),
  })
  .catch({});

/** A model, the models that take over for it, and where the document says so. */
interface Chain {
  readonly at: string;
  readonly model: string | undefined;
  readonly fallbacks: readonly string[] | undefined;
}

/**
 * Lists the models that take over for each model: those of its own entries first, then those of the agents that begin with it.
 * Names that no model has, and a second chain that says otherwise, are omitted.
 */
export function chainsOf(
  own: readonly (readonly [model: string, fallbacks: readonly string[]])[],
  agents: unknown,
  omitted: FieldError[],
): ReadonlyMap<string, readonly string[]> {
  const known = new Set(own.map(([model]) => model));
  const chains = new Map<string, readonly string[]>();
  const { defaults, list = [] } = agentsSchema.parse(agents ?? {});
  const all: Chain[] = [
    ...own.map(([model, fallbacks]) => ({
      at: `model_list (${model}).fallbacks`,
      model,
      fallbacks,
    })),
    {
      at: 'agents.defaults.model_fallbacks',
      model: defaults?.model_name,
      fallbacks: defaults?.model_fallbacks,
    },
    {
      at: 'agents.defaults.image_model_fallbacks',
      model: defaults?.image_model,
      fallbacks: defaults?.image_model_fallbacks,
    },
    ...list.map(({ model }, index) => ({
      at: `agents.list[${index}].model.fallbacks`,
      model: model?.primary,
      fallbacks: model?.fallbacks,
    })),
  ];
  for (const { at, model, fallbacks = [] } of all) {
    if (model === undefined || fallbacks.length === 0) continue;
    const unknown = fallbacks.filter((name) => !known.has(name));
    for (const name of unknown) {
      omitted.push({ path: at, message: `"${name}" is the model_name of no entry` });
    }
    if (!known.has(model)) continue;
    const chain = [...new Set(fallbacks)].filter((name) => known.has(name) && name !== model);
    const before = chains.get(model);
    if (before === undefined) chains.set(model, chain);
    else if (before.join('\n') !== chain.join('\n')) {
      const message = `"${model}" has other fallbacks already, and a group has one order of its members`;
      omitted.push({ path: at, message });
    }
  }
  return chains;
}
