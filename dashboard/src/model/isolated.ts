/** Isolates a name that callers chose with Unicode marks, for texts that cannot contain `<bdi>`. */
export function isolated(name: string): string {
  return `\u2068${name}\u2069`;
}

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
