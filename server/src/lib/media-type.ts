/**
 * What the type of an attached file can be: `application/pdf`, without parameters. Messages and multipart types are
 * excluded, because they must not be encoded as files are.
 */
export const isMediaType = (text: string) =>
  /^(?!multipart\/|message\/)[a-z0-9][\w!#$&^.+-]{0,62}\/[a-z0-9][\w!#$&^.+-]{0,126}$/i.test(text)
