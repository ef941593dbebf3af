BEGIN TRANSACTION;
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'0e60e5fde1b4','ada','What is a good diet?','2026-11-25T13:28:22.654702+00:00','2026-11-25T13:28:22.678114+00:00');
INSERT INTO "conversations" VALUES(2,'5156695d8a46','bob','Work','2026-11-25T13:28:22.679518+00:00','2026-11-25T13:28:22.679921+00:00');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'912e4f86371a','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:22.618921+00:00','2026-11-25T13:28:22.618921+00:00');
INSERT INTO "facts" VALUES(2,'1b8f433892b9','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:22.630997+00:00','2026-11-25T13:28:22.643028+00:00');
INSERT INTO "facts" VALUES(3,'18f0a2b6a2b6','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:22.653928+00:00','2026-11-25T13:28:22.653928+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,1);
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'4993fac8e55c','0e60e5fde1b4','82fc03318a49','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"4993fac8e55c","created":"2026-11-25T13:28:22.655420Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":""}],"digests":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'e96b324b2935','0e60e5fde1b4','82fc03318a49','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"e96b324b2935","created":"2026-11-25T13:28:22.677917Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[],"digests":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'ece8bc7489d4','5156695d8a46','82fc03318a49','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"ece8bc7489d4","created":"2026-11-25T13:28:22.679786Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[],"digests":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
COMMIT;
