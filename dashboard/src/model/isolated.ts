/** Puts a name that callers chose between marks of Unicode, where there can be no `<bdi>`: in a sentence or a title. */
export function isolated(name: string): string {
  return `\u2068${name}\u2069`;
}

/** Names who a call is of, as far as that is known: tenant, agent and model. */
export function actorOf(call: {
  readonly tenant: string;
  readonly agent: string | null;
  readonly model: string | null;
}): string {
  return [call.tenant, call.agent, call.model]
    .filter((part) => part !== null)
    .map((part) => isolated(part))
    .join(', ');
}
