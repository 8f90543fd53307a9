/** Methods of calls that may take a slot. HEAD and OPTIONS never do. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Those whose calls bring a body, as what generates does; others mostly ask what became of it. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];
