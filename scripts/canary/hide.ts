/** Takes secrets out of a text: an answer of somebody else's might repeat one. */
export function hide(text: string, secrets: readonly (string | null)[]): string {
  return secrets.reduce<string>(
    (hidden, secret) => (secret === null ? hidden : hidden.replaceAll(secret, '***')),
    text,
  );
}
