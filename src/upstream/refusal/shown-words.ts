const SHOWN_MAX = 300;

/**
 * Patterns of secrets and account names: keys and ids by their usual prefixes, bearer tokens, mail addresses,
 * parameters of a query, and long words with digits. Names of models stay readable: they are in lower case and contain
 * dashes.
 */
const SECRETS = [
  /\bbearer\s+[^\s"',;]+/gi,
  /\b(?:sk|pk|rk|ak|gsk|hf|nvapi|org|proj|acct|cus|key|user|req|wrk|hg|tok|token|r8|ghp|gho|pat)[-_][\w-]{4,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\beyJ[\w-]{6,}(?:\.[\w-]+)*/g,
  /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  /(?<=[?&][\w.-]{1,40}=)[^\s&"']+/g,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /(?<![\w-])(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}[a-z])[\w-]{24,}/g,
  /\b(?=\w{0,60}\d)(?=\w{0,60}[a-z])\w{20,}\b/gi,
] as const;

/** Returns an upstream's message as it is shown to operators and other callers: short, on one line, without secrets. */
export function shownWords(message: string): string | null {
  // Cut both before and after, because the time of the patterns grows with the length.
  let words = message
    .slice(0, 4 * SHOWN_MAX)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim();
  for (const secret of SECRETS) words = words.replaceAll(secret, '…');
  if (words.length > SHOWN_MAX) words = `${words.slice(0, SHOWN_MAX - 1).trimEnd()}…`;
  return words === '' ? null : words;
}
